"""Pages as the server sends them, taken apart: text, tables by their headings, and links."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import httpx

Query = dict[str, list[str]]


def get(client: httpx.Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


def plain(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def table(html: str, number: int = 0) -> list[dict[str, str]]:
    """The rows of one of a page's tables by its headings."""
    heads, bodies = (
        re.findall(rf"<{part}>(.*?)</{part}>", html, re.S) for part in ("thead", "tbody")
    )
    names = [plain(each).rstrip(" ↑↓") for each in re.findall(r"<th.*?</th>", heads[number], re.S)]
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", bodies[number], re.S)
    cells = [[plain(each) for each in re.findall(r"<t[dh].*?</t[dh]>", row, re.S)] for row in rows]
    return [dict(zip(names, row, strict=True)) for row in cells]


def asked(href: str) -> Query:
    """What an address asks for."""
    return parse_qs(urlsplit(unescape(href)).query)


def links(html: str, path: str) -> list[Query]:
    """What the links to a page ask for, each."""
    return [asked(href) for href in re.findall(rf'href="({re.escape(path)}\?[^"]*)"', html)]


def hidden(html: str, form: str) -> set[tuple[str, str]]:
    """The hidden fields of the form whose opening tag holds the text."""
    (found,) = re.findall(rf"<form[^>]*{form}.*?</form>", html, re.S)
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', found)
    return {(name, unescape(value)) for name, value in fields}
