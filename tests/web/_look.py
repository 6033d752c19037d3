"""A tab of a real browser that remembers what it must not have seen: errors, and other hosts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.web._site import Running

DRAWN = "[data-drawn], [data-failed]"
SETTLED = (
    "document.readyState === 'complete' && !document.querySelector('html.loading, .htmx-request')"
)
# what the console reports of a refused request, and of one that a newer change replaces (hx-sync)
MEANT = ("status of 4", "AbortError: signal is aborted")
# the contrast of every text with the first opaque background behind it (WCAG 2's formula)
CONTRAST = """() => {
    const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const rgba = (text) => {
        canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const light = ([r, g, b]) => {
        const line = (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        const [x, y, z] = [r, g, b].map((c) => line(c / 255));
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const behind = (element) => {
        for (let e = element; e; e = e.parentElement) {
            const colour = rgba(getComputedStyle(e).backgroundColor);
            if (colour[3] === 255) return colour;
        }
        return [255, 255, 255, 255];
    };
    const bad = [];
    for (const e of document.querySelectorAll('body *')) {
        const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
        const box = e.getBoundingClientRect();
        if (!own || !box.width || box.width < 2 || getComputedStyle(e).visibility === 'hidden') continue;
        const faded = getComputedStyle(e).opacity;
        const text = rgba(getComputedStyle(e).color), back = behind(e);
        const mixed = text.slice(0, 3).map((c, i) => c * faded + back[i] * (1 - faded));
        const [a, b] = [light(mixed), light(back)].sort((p, q) => q - p);
        const ratio = (a + 0.05) / (b + 0.05);
        const name = `${e.tagName}.${e.className} "${e.textContent.trim().slice(0, 20)}"`;
        if (ratio < 4.5) bad.push(`${name} ${ratio.toFixed(2)}`);
    }
    return bad;
}"""


class Tab:
    """A page of the app; `complaints` are console errors and requests to anybody else."""

    def __init__(self, page: Any, url: str) -> None:
        self.page, self.url = page, url.rstrip("/")
        self.complaints: list[str] = []
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", self._asked)

    def open(self, path: str) -> Any:
        answer = self.page.goto(self.url + path)
        self.page.wait_for_load_state("load")
        return answer

    def until(self, test: Callable[[], Any], what: str) -> Any:
        """Wait by asking: the policy forbids the pages what the browser's own waiting would evaluate."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if found := test():
                return found
            self.page.wait_for_timeout(50)
        raise AssertionError(f"in vain: {what} at {self.page.url}")

    def arrive(self, part: str, what: str) -> None:
        """Wait for an address and for what it leads to, which comes after it."""
        self.until(lambda: part in self.page.url, what)
        self.settle()

    def settle(self) -> None:
        """Wait until a page that changes is whole: loaded, and everything that it asked for swapped in."""
        self.page.wait_for_load_state("load")
        self.until(lambda: self.page.evaluate(SETTLED), "the page to be whole")

    def drawn(self, id: str) -> Any:
        """The chart of an analysis, once it is drawn."""
        chart = self.page.locator(f'.chart[data-id="{id}"]').first
        chart.scroll_into_view_if_needed()
        self.until(lambda: chart.evaluate(f"e => e.matches('{DRAWN}')"), f"the figure {id}")
        assert chart.get_attribute("data-failed") is None, chart.inner_text()
        return chart

    def count(self) -> int:
        return int(self.page.locator("[data-count]").first.get_attribute("data-count"))

    def overflow(self) -> int:
        self.settle()
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning") and not any(each in message.text for each in MEANT):
            self.complaints.append(f"console: {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:" + self.url)):
            self.complaints.append(f"request: {request.url}")


@contextmanager
def tab(chromium: Any, server: Running, token: str | None = None, **options: Any) -> Iterator[Tab]:
    """A fresh context; with a token, signed in through the form. It ends only without complaints."""
    options.setdefault("viewport", {"width": 1280, "height": 900})
    options.setdefault("locale", "en-US")  # in which a date is typed, whatever the machine's
    context = chromium.new_context(**options)
    try:
        found = Tab(context.new_page(), server.url)
        if token is not None:
            found.open("/sign-in")
            found.page.fill("input[name=token]", server.secrets[token])
            found.page.click("button:has-text('Sign in')")
            found.until(lambda: "/sign-in" not in found.page.url, "to be signed in")
            found.settle()
        yield found
        found.page.evaluate("0")  # a round trip: what the page has complained of has arrived
        assert not found.complaints, found.complaints
    finally:
        context.close()
