"""Static images: the system's Chromium opens a figure's page and takes a picture of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from hakaru.errors import HakaruError
from hakaru.figures import _page as page
from hakaru.figures.theme import DARK, LIGHT, Theme

if TYPE_CHECKING:
    from hakaru.figures._base import Figure

ENDINGS = (".html", ".png", ".svg", ".pdf")
VARIABLE = "HAKARU_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
TIME_LIMIT_S = 60
SWITCHES = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def save(figure: Figure, path: Path, dark: bool = False) -> None:
    """Write the figure as the file's ending says: html, png, svg or pdf."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise HakaruError(f"{path}: a figure's file ends in {', '.join(ENDINGS)}")
    theme = DARK if dark else LIGHT
    if ending == ".html":
        path.write_text(page.to_html(figure, theme), encoding="utf-8")
    elif ending == ".svg":
        path.write_text(_svg(figure, theme), encoding="utf-8")
    else:
        path.write_bytes(_picture(figure, theme, ending))


def find_chromium() -> str:
    """The browser that the variable names, else the first that the system has."""
    chosen = os.environ.get(VARIABLE)
    found = shutil.which(chosen) if chosen else next(filter(None, map(shutil.which, NAMES)), None)
    if found:
        return found
    if chosen:
        raise HakaruError(f"{VARIABLE} is {chosen!r}, which is no program that can be run")
    raise HakaruError(
        f"no Chromium was found (looked for {', '.join(NAMES)}), and png, svg and pdf are drawn by one. "
        f"Install it (Debian: apt install chromium), or name it in {VARIABLE}, or write to .html"
    )


def _picture(figure: Figure, theme: Theme, ending: str) -> bytes:
    renderer: page.Renderer = "canvas" if ending == ".png" else "svg"
    with tempfile.TemporaryDirectory(prefix="hakaru-figure-") as folder:
        out = Path(folder, f"figure{ending}")
        how = {
            ".png": [f"--screenshot={out}", "--force-device-scale-factor=2"],
            ".pdf": [f"--print-to-pdf={out}", "--no-pdf-header-footer"],
        }
        # a chart is as wide as the window when it is drawn, also on paper
        window = f"--window-size={page.WIDTH},{page.height_of(figure)}"
        document = page.to_html(page.still(figure), theme, renderer)
        _run(document, [*how[ending], window], Path(folder))
        if not out.is_file():
            raise HakaruError(f"{find_chromium()} ended without writing the {ending[1:]}")
        return out.read_bytes()


def _svg(figure: Figure, theme: Theme) -> str:
    with tempfile.TemporaryDirectory(prefix="hakaru-figure-") as folder:
        document = _run(page.to_svg_page(page.still(figure)), ["--dump-dom"], Path(folder))
    _, begin, rest = document.partition('<pre id="svg">')
    chart, end, _ = rest.partition("</pre>")
    if not begin or not end or not chart:
        raise HakaruError(f"{find_chromium()} drew no SVG")
    return page.framed_svg(figure, theme, unescape(chart))


def _run(html: str, how: Sequence[str], folder: Path) -> str:
    """Open the page with a profile of its own, which goes with the folder."""
    document = folder / "figure.html"
    document.write_text(html, encoding="utf-8")
    # a container's root has no user namespace for the sandbox; the page is our own and loads nothing
    sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [find_chromium(), *SWITCHES, *sandbox, profile, *how, document.as_uri()]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIME_LIMIT_S, errors="replace"
        )
    except subprocess.TimeoutExpired:
        raise HakaruError(f"{command[0]} took more than {TIME_LIMIT_S} s to draw") from None
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-3:])
        raise HakaruError(f"{command[0]} failed ({done.returncode}): {last}")
    return done.stdout
