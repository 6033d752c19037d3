"""The report as data: all analyses with their own numbers, nothing fetched, nothing of a log executed."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hakaru.analyses import Selection, load_all, open_session
from hakaru.cli import main
from hakaru.lake import Lake
from hakaru.report import tell, to_html
from hakaru.schema import INGESTS, REJECTS
from hakaru.texts import LANGUAGES, language
from tests.conftest import job, put, utc
from tests.report.conftest import Browser

HOSTILE = (
    "</script><script>document.documentElement.dataset.pwned=1</script>",
    '"><img src=x onerror="document.documentElement.dataset.pwned=2">',
    "\u202egnp.exe",
    "{{ 7 * 7 }}",
)
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """The elements of a page with their attributes, and the text within each that has an id or data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.open: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.elements.append((tag, named))
        key = named.get("id") or (named.get("data-made") and f"made-{named['data-made']}")
        if tag not in VOID:
            self.open.append((tag, key))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        for _, key in self.open:
            if key:
                self.texts[key] = self.texts.get(key, "") + data

    def ids(self, attribute: str) -> list[str | None]:
        return [named[attribute] for _, named in self.elements if attribute in named]


def html_of(lake: Lake, lang: str = "en", beside: Any = None, **selection: Any) -> str:
    with open_session(lake) as session:
        return to_html(tell(session, Selection(**selection), beside, lang))


def report(lake: Lake, output: Path, *arguments: str) -> Result:
    return CliRunner().invoke(
        main, ["report", "-w", str(lake.workspace), "-o", str(output), *arguments]
    )


@pytest.fixture
def small(lake_of: Callable[..., Lake]) -> Lake:
    """Ten jobs of two queues, one of them on two GPUs and one that failed."""
    rows = [job(n, queue="normal" if n % 2 else "long", user=f"u{n % 3}") for n in range(8)]
    rows.append(job(8, num_gpus=2, run_s=7200.0))
    rows.append(job(9, state="failed", run_s=30.0, submitted_at=utc("2018-04-02T10:00:00")))
    lake = lake_of(rows, '{"zone": "Asia/Tokyo", "gpus_per_node": 8, "nodes": 2}')
    bad = {"cluster": "c", "file": "/secret/place/jobs.csv", "source": "test", "text": "x"}
    put(lake, REJECTS.name, [bad | {"line": n, "reason": "no end"} for n in (3, 7)])
    return lake


def test_every_analysis_is_there_with_what_it_asks_and_how_it_was_made(small: Lake) -> None:
    page = Page(html_of(small))
    for analysis in load_all():
        text = page.texts[analysis.id]
        assert analysis.title in text and analysis.answers in text, analysis.id
        assert analysis.sql() in page.texts[f"made-{analysis.id}"], analysis.id
        assert "10 selected jobs" in text, analysis.id
    assert page.ids("data-analysis") == [analysis.id for analysis in load_all()]


def test_numbers_worked_by_hand(small: Lake) -> None:
    page = Page(html_of(small))
    options = json.loads(page.texts["option-queues"])
    assert [item["value"] for item in options["series"][0]["data"]] == [6, 4]
    assert "where" not in json.dumps(options)
    assert "2018-01-01 09:00 – 2018-04-02 19:00" in page.texts["machine"]  # the site's clock
    assert "Asia/Tokyo" in page.texts["machine"]
    single = "88.9 % of jobs that ran for at least 60 s use one GPU"
    assert single in page.texts["stands_out"]  # 8 of the 9 that ran a minute
    assert "no end2jobs.csv:3" in page.texts["quality"].replace("\n", "")
    assert "secret" not in page.texts["quality"]
    assert re.search(r"requested_s\s*100.0 %", page.texts["quality"])
    assert re.search(r"application\s*0.0 %", page.texts["quality"])
    assert "DuckDB" in page.texts["made"]


def test_filters_and_clusters_beside_it(small: Lake) -> None:
    page = Page(html_of(small, beside=["Kraken"], where="queue = 'long'", until="2018-02-01"))
    assert "--until 2018-02-01  --where queue = 'long'" in page.texts["machine"]
    assert "4 jobs" in html_of(small, where="queue = 'long'", until="2018-02-01")
    heads = page.texts["compared"].split("\n")
    assert any("Kraken" in line for line in heads)
    assert "Philly" not in page.texts["compared"]
    assert "JSSPP 2012" in page.texts["sources_cited"]


def test_nothing_is_fetched(small: Lake) -> None:
    text = html_of(small)
    page = Page(text)
    for tag, named in page.elements:
        assert not {"src", "srcset", "poster", "background", "action"} & named.keys(), (tag, named)
        assert tag not in ("link", "iframe", "object", "embed", "base", "img")
        assert (named.get("href") or "#").startswith("#")
    assert "@import" not in text and "url(" not in text.partition("</style>")[0]
    (policy,) = [n["content"] for t, n in page.elements if "content-security" in str(n).lower()]
    assert policy and policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy and "http" not in policy


def test_synthetic_data_is_marked(small: Lake) -> None:
    assert "SYNTHETIC" not in html_of(small).partition("<main>")[0]
    row = {"ingest_id": "s", "cluster": "c", "source": "synth", "synthetic": True}
    now = utc("2020-01-01T00:00:00")
    put(small, INGESTS.name, [row | {"started_at": now, "ended_at": now}])
    assert "SYNTHETIC DATA" in html_of(small).partition("<main>")[0]


def test_missing_rows_are_said_at_the_top(small: Lake) -> None:
    assert "ROWS ARE MISSING" not in html_of(small)
    now = utc("2020-01-01T00:00:00")
    row = {"ingest_id": "m", "cluster": "c", "source": "swf", "synthetic": False, "inputs": ["a"]}
    counts = {"num_read": 1000, "num_new": 875, "num_rejected": 125}
    put(small, INGESTS.name, [row | counts | {"started_at": now, "ended_at": now}])
    top = html_of(small).partition("<main>")[0]
    assert "ROWS ARE MISSING" in top and "12.5 % of the rows" in top


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_fixed_texts_are_in_the_language(lang: str, small: Lake) -> None:
    page, words = Page(html_of(small, lang)), language(lang)
    assert ("html", {"lang": lang}) in page.elements
    for key in ("machine", "stands_out", "quality", "made"):
        assert words.say("report", key) in page.texts[key]
    axis = json.loads(page.texts["option-queues"])["xAxis"]["name"]
    assert axis == {"en": "Queue", "ja": "キュー", "ko": "큐"}[lang]
    sample = {"en": "a sample of", "ja": "無作為に選んだ", "ko": "무작위로 뽑은"}
    assert sample[lang] in page.texts["job-shapes"]
    for analysis in load_all():
        assert words.told("title", analysis.id, analysis.title) in page.texts[analysis.id]
        if lang != "en":
            assert analysis.answers not in page.texts[analysis.id]
            assert "only jobs" not in page.texts[analysis.id]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--compare", "krakken"], "there is no published cluster 'krakken'"),
        (["--cluster", "x"], "there is no cluster 'x'"),
        (["--where", "colour = 1"], "colour"),
    ],
)
def test_mistakes_are_told(small: Lake, tmp_path: Path, arguments: list[str], message: str) -> None:
    result = report(small, tmp_path / "r.html", *arguments)
    assert result.exit_code == 1 and message in result.output
    assert not (tmp_path / "r.html").exists()


def test_another_ending_and_an_empty_workspace_are_told(lake: Lake, tmp_path: Path) -> None:
    assert "the report is HTML" in report(lake, tmp_path / "r.pdf").output
    result = report(lake, tmp_path / "r.html")
    assert result.exit_code == 1
    assert "holds no jobs yet. Begin with: hakaru ingest FILE --cluster NAME" in result.output


def test_a_selection_of_nothing_is_a_report_that_says_so(small: Lake) -> None:
    page = Page(html_of(small, since="2030-01-01"))
    assert "Nothing notable in this selection." in page.texts["stands_out"]
    assert page.ids("data-analysis") == [analysis.id for analysis in load_all()]


def test_hostile_names_are_inert(
    lake_of: Callable[..., Lake], tmp_path: Path, browser: Browser
) -> None:
    rows = [
        job(n, queue=name, user=name, account=name, name=name) for n, name in enumerate(HOSTILE)
    ]
    out = tmp_path / "r.html"
    assert report(lake_of(rows), out, "--where", f"queue <> '{HOSTILE[2]}x'").exit_code == 0
    done = browser(out, "--dump-dom", "--window-size=1200,30000")
    assert "CONSOLE" not in done.stderr, done.stderr
    drawn = Page(done.stdout)
    assert ("html", {"lang": "en"}) in drawn.elements
    assert not [tag for tag, _ in drawn.elements if tag == "img"]
    scripts = [n for tag, n in drawn.elements if tag == "script" and n.get("type") is None]
    assert len(scripts) == 2
    assert HOSTILE[0] in drawn.texts["users"] and HOSTILE[3] in drawn.texts["users"]
    assert len([tag for tag, _ in drawn.elements if tag == "canvas"]) >= 20


def test_the_pdf_has_pages_numbers_and_text(small: Lake, tmp_path: Path, browser: Browser) -> None:
    out, pdf = tmp_path / "r.html", tmp_path / "r.pdf"
    assert report(small, out).exit_code == 0
    browser(out, f"--print-to-pdf={pdf}", "--no-pdf-header-footer")
    assert pdf.read_bytes().startswith(b"%PDF")
    text = subprocess.run(
        ["pdftotext", str(pdf), "-"], capture_output=True, text=True, check=True
    ).stdout
    num_pages = text.count("\f")
    assert num_pages >= 8
    assert f"1 / {num_pages}" in text and f"{num_pages} / {num_pages}" in text
    words = " ".join(text.split())
    assert "The workload of c" in words and "88.9 % of jobs that ran for at least 60 s" in words


def test_aaic(aaic_lake: Lake, tmp_path: Path) -> None:
    """The paper's numbers in its sentences and beside its figures, in less than 3 MB."""
    out = tmp_path / "r.html"
    assert report(aaic_lake, out).exit_code == 0
    assert out.stat().st_size < 3_000_000
    page = Page(out.read_text())
    told = page.texts["stands_out"]
    assert "96.2 % of jobs that ran for at least 60 s use one GPU" in told
    assert "36.5 % of completed jobs that ran for at least 60 s request the maximum" in told
    assert "uses 4.0 % of the time it requests and asks for 25 times its run time" in told
    assert "459,545 jobs" in out.read_text()
    assert "not counted: user ids hold within one log file only" in page.texts["machine"]
    assert "somebody in two files counts as two" in page.texts["concentration"]
    beside = r"Walltime request accuracy, mean.*10\.7 %.*Kraken ~33\.0 %"
    assert re.search(beside, page.texts["request-accuracy"], re.DOTALL)
