"""Real Chromium: every kind is drawn without a complaint, and the images are images."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hakaru.analyses import Selection, Session, load_all
from hakaru.assets import script
from hakaru.cli import main
from hakaru.errors import HakaruError
from hakaru.figures import Figure, _chromium, draw, save
from hakaru.figures._chromium import _run, find_chromium
from hakaru.figures._page import WIDTH, Renderer, embedded, height_of, to_html
from hakaru.figures.theme import LIGHT
from hakaru.lake import Lake
from tests.conftest import job
from tests.figures._draw import drawn, run

# draws every option, then leaves in the page what was complained of and how much ink each chart has
PAGE = """<!doctype html><meta charset="utf-8"><body><pre id="told"></pre>
<script>
const told = {{complaints: [], ink: {{}}, tooltips: {{}}}};
const complain = (...words) => told.complaints.push(words.join(" "));
console.error = console.warn = complain;
addEventListener("error", event => complain(event.message));
</script>
<script>{script}</script>
<script type="application/json" id="options">{options}</script>
<script>
const options = JSON.parse(document.getElementById("options").textContent);
for (const [name, [option, height]] of Object.entries(options)) {{
  const place = document.body.appendChild(document.createElement("div"));
  place.style.cssText = `width: {width}px; height: ${{height}}px`;
  const chart = echarts.init(place, null, {{renderer: "svg"}});
  try {{
    chart.setOption(option);
    told.ink[name] = place.querySelectorAll("path, text").length;
    for (let at = 0; at < option.series.length; at++)
      if (option.series[at].type !== "parallel")  // of which ECharts has tooltips for the mouse only
        chart.dispatchAction({{type: "showTip", seriesIndex: at, dataIndex: 0}});
    told.tooltips[name] = place.lastElementChild.innerHTML;
  }} catch (error) {{ complain(name, error.stack); }}
}}
document.getElementById("told").textContent = JSON.stringify(told);
</script>
"""


def looked_at(figures: dict[str, Figure], folder: Path, width: int = 900) -> dict[str, Any]:
    options = {name: [figure.option, figure.height] for name, figure in figures.items()}
    page = PAGE.format(script=script("echarts"), options=embedded(options), width=width)
    found = re.search(r'<pre id="told">(.*?)</pre>', _run(page, ["--dump-dom"], folder), re.S)
    assert found
    told: dict[str, Any] = json.loads(unescape(found[1]))
    return told


def test_every_analysis_is_drawn_without_a_complaint(sample: Session, tmp_path: Path) -> None:
    figures = {}
    for analysis in load_all():
        figures[analysis.id] = draw(sample.run(analysis))
        figures[f"{analysis.id} dark"] = draw(sample.run(analysis), dark=True)
        if analysis.groups:
            result = sample.run(analysis, Selection(by="queue"))
            figures[f"{analysis.id} by queue"] = draw(result)
    told = looked_at(figures, tmp_path)
    assert told["complaints"] == []
    assert set(told["ink"]) == set(figures)
    assert min(told["ink"].values()) > 10


def test_narrow_and_empty(sample: Session, tmp_path: Path) -> None:
    figures = {
        each.id: draw(sample.run(each, Selection(where="num_gpus = 99"))) for each in load_all()
    }
    figures["narrow"] = draw(run(sample, "parallelism-by-quarter"))
    told = looked_at(figures, tmp_path, width=320)
    assert told["complaints"] == []
    assert all(ink > 0 for ink in told["ink"].values())


def test_names_do_not_become_markup(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    bad = "<img src=x onerror=alert(1)></script><script>{c}{b}"
    lake = lake_of([job(i, queue=bad, application=bad, user=bad) for i in range(3)])
    ids = [each.id for each in load_all() if each.groups]
    figures = {id: drawn(lake, id, by="queue") for id in ids}
    told = looked_at(figures | {"users": drawn(lake, "users")}, tmp_path)
    assert told["complaints"] == []
    assert any("&lt;img" in tip for tip in told["tooltips"].values()), "no tooltip shows the name"
    assert not any("<img" in tip or "<script" in tip for tip in told["tooltips"].values())


@pytest.fixture(scope="module")
def figure(sample: Session) -> Figure:
    return draw(run(sample, "walltime-cdf"))


def test_html_needs_no_network(figure: Figure, tmp_path: Path) -> None:
    save(figure, tmp_path / "f.html")
    page = (tmp_path / "f.html").read_text()
    assert not re.search(r'(src|href)\s*=\s*"', page.replace(script("echarts").strip(), ""))
    assert all(note in page for note in figure.notes)
    assert figure.question in page


@pytest.mark.parametrize("renderer", ["canvas", "svg"])
def test_the_policy_lets_only_the_pages_own_scripts_run(
    figure: Figure, tmp_path: Path, renderer: Renderer
) -> None:
    """A script that somebody got into the page is not run; the chart is drawn, with the page's style."""
    page = to_html(figure, LIGHT, renderer)
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert policy and "default-src 'none'" in policy[1] and "unsafe" not in policy[1]
    assert page.index(policy[0]) < page.index("<title>")
    planted = "<script>document.title = 'owned'</script><img src=x onerror='document.title=1'>"
    dom = _run(page.removesuffix("</body></html>\n") + planted, ["--dump-dom"], tmp_path)
    assert f"<title>{figure.title}</title>" in dom
    assert re.search(rf'<{renderer}[^>]* height="{figure.height}"', dom)


def test_names_with_control_characters_make_well_formed_svg(
    lake_of: Callable[..., Lake], tmp_path: Path
) -> None:
    bad = "a\x01\x1b[31m\x0b&<\ufffe"
    figure = drawn(lake_of([job(i, queue=bad, user=bad) for i in range(3)]), "queues")
    figure = replace(figure, title=f"T{bad}", notes=(*figure.notes, f"N{bad}"))
    save(figure, tmp_path / "f.svg")
    image = ET.fromstring((tmp_path / "f.svg").read_text())
    words = {"".join(each.itertext()) for each in image.iter("{http://www.w3.org/2000/svg}text")}
    shown = "a\ufffd\ufffd[31m\ufffd&<\ufffd"
    assert {f"T{shown}", f"N{shown}"} <= words
    assert any(shown in each for each in words - {f"T{shown}", f"N{shown}"})


def test_png(figure: Figure, tmp_path: Path) -> None:
    save(figure, tmp_path / "f.png")
    image = (tmp_path / "f.png").read_bytes()
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", image[16:24]) == (2 * WIDTH, 2 * height_of(figure))
    assert len(image) > 30_000  # a blank page of this size is less


def test_svg(figure: Figure, tmp_path: Path) -> None:
    save(figure, tmp_path / "f.svg", dark=True)
    image = ET.fromstring((tmp_path / "f.svg").read_text())
    words = " ".join(
        "".join(each.itertext()) for each in image.iter("{http://www.w3.org/2000/svg}text")
    )
    for expected in (figure.title, figure.notes[-1], "Run time (hours)", "all jobs"):
        assert expected in words
    assert len(list(image.iter("{http://www.w3.org/2000/svg}path"))) > 10


def test_pdf(figure: Figure, tmp_path: Path) -> None:
    save(figure, tmp_path / "f.pdf")
    pages = (tmp_path / "f.pdf").read_bytes()
    assert pages.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", pages)) == 1


def test_the_command(sample_lake: Lake, tmp_path: Path) -> None:
    out = tmp_path / "new folder" / "states.html"
    arguments = ["show", "states", "-w", str(sample_lake.workspace), "--figure", str(out)]
    done = CliRunner().invoke(main, [*arguments, "-o", str(tmp_path / "states.csv")])
    assert done.exit_code == 0, done.output
    assert f"wrote {out}" in done.stderr
    assert "How jobs ended" in out.read_text()
    assert (tmp_path / "states.csv").read_text().startswith('"state"')


def test_an_ending_that_is_not_known(figure: Figure, tmp_path: Path) -> None:
    with pytest.raises(HakaruError, match=r"ends in \.html, \.png, \.svg, \.pdf"):
        save(figure, tmp_path / "f.gif")


def test_no_chromium(figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HAKARU_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HakaruError, match="apt install chromium"):
        save(figure, tmp_path / "f.png")
    assert list(tmp_path.iterdir()) == []


def test_a_chromium_that_fails_or_hangs(
    figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stand_in(text: str) -> None:
        program = tmp_path / "browser"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        monkeypatch.setenv("HAKARU_CHROMIUM", str(program))

    stand_in("echo no display >&2; exit 3")
    with pytest.raises(HakaruError, match=r"browser failed \(3\): no display"):
        save(figure, tmp_path / "f.svg")
    stand_in("exit 0")
    for ending in ("png", "svg"):
        with pytest.raises(HakaruError, match=r"browser (ended without writing|drew no SVG)"):
            save(figure, tmp_path / f"f.{ending}")
    monkeypatch.setattr(_chromium, "TIME_LIMIT_S", 0.2)
    stand_in("exec sleep 5")
    with pytest.raises(HakaruError, match=r"took more than 0\.2 s"):
        save(figure, tmp_path / "f.pdf")
    monkeypatch.setenv("HAKARU_CHROMIUM", str(tmp_path / "nothing"))
    with pytest.raises(HakaruError, match="no program that can be run"):
        find_chromium()


def test_nothing_is_left_behind(
    figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    save(figure, tmp_path / "f.svg")
    assert [each.name for each in tmp_path.iterdir()] == ["f.svg"]
    deadline = time.monotonic() + 30  # a child of the browser may outlive it by a moment
    while str(tmp_path) in (running := _running()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert str(tmp_path) not in running


def _running() -> str:
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
