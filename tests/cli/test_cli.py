"""What all verbs share: help, completion, clear words for a mistake."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest

from hakaru.analyses import load_all
from hakaru.cli import main
from hakaru.cli._output import without_nan
from hakaru.cli._render import cell
from hakaru.lake import Lake
from tests._cli import hakaru
from tests.conftest import job, put_jobs


def test_every_verb_has_help_with_an_example() -> None:
    for name in main.list_commands(None):  # type: ignore[arg-type]
        result = hakaru(name, "--help")
        assert result.exit_code == 0, result.output
        assert "Example" in result.output, f"hakaru {name} --help shows no example"


def test_help_does_not_import_the_heavy_packages() -> None:
    code = (
        "import sys; from hakaru.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'duckdb','deltalake','pyarrow','sqlglot','numpy','pyspark'} & set(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "waltime"], "did you mean walltime"),
        (["show", "walltime", "--where", "cost > 1"], "there is no column 'cost'"),
        (["show", "walltime", "--since", "yesterday"], "is not a date or time"),
        (["show", "walltime", "--by", "colour"], "cannot group by 'colour'"),
        (["show", "walltime", "--by", "queu"], "did you mean queue?"),
        (["show", "walltime", "--by", "user", "--by", "queue"], "one --by only"),
        (["show", "queues", "--by", "queue"], "queues has a row for each queue already"),
        (["show", "walltime", "--state", "done"], "there is no state 'done'"),
        (["show", "walltime", "--cluster", "mimi"], "did you mean mini?"),
        (["show", "states", "--since", "2019-01-02", "--until", "2019-01-01"], "ends before it"),
        (["show", "states", "--since", "2019-01-01T10:00", "--until", "2019-01-01T09:00"], "ends"),
        (["export", "--format", "swf", "-o", "x", "--since", "2030-01-01"], "nothing was written"),
        (["show", "states", "-o", "a.json", "--format", "csv"], "ends like json, and --format"),
        (["show", "states", "-o", "a.xyz"], "cannot tell its format"),
        (["show", "states", "-o", "/dev/null/a.csv"], "/dev/null is not a folder"),
        (["show", "walltime", "--cluster", "other"], "there is no cluster 'other'"),
        (["show", "walltime", "--param", "short_h"], "--param takes NAME=VALUE"),
    ],
)
def test_mistakes_get_one_clear_line(log: Path, arguments: list[str], message: str) -> None:
    result = hakaru(*arguments, "--from", log)
    assert result.exit_code == 1
    assert result.output.startswith("error: ")
    assert message in result.output
    assert "Traceback" not in result.output


def test_no_workspace_says_how_to_make_one(tmp_path: Path) -> None:
    result = hakaru("show", "walltime", "-w", tmp_path / "none")
    assert result.exit_code == 1
    assert "hakaru ingest FILE --cluster NAME" in result.output


def test_analyses_lists_every_question() -> None:
    output = hakaru("analyses").output
    assert "walltime" in output
    assert "AAIC Table 3" not in output
    assert "AAIC Table 3" in hakaru("analyses", "--verbose").output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    assert "_HAKARU_COMPLETE" in hakaru("completion", shell).output


def test_completion_knows_verbs_and_ids() -> None:
    def complete(words: str, number: int) -> str:
        words_of = {
            "COMP_WORDS": words,
            "COMP_CWORD": str(number),
            "_HAKARU_COMPLETE": "bash_complete",
        }
        command = [sys.executable, "-c", "from hakaru.cli import main; main(prog_name='hakaru')"]
        done = subprocess.run(command, env=os.environ | words_of, capture_output=True, text=True)
        return done.stdout

    assert "plain,show" in complete("hakaru sh", 1)
    assert "walltime-cdf" in complete("hakaru show wallt", 2)
    assert "plain,queue" in complete("hakaru show walltime --by que", 4)
    assert "plain,Kraken,Philly" in complete("hakaru compare --published Kraken,Ph", 3)
    assert "quarter=" in complete("hakaru show jobs-by-quarter --param q", 4)


def completed(*words: str, start: str = "", **params: object) -> list[str]:
    """What is offered for the last of the words, an option or an argument of a command."""
    command = main.get_command(None, words[0])  # type: ignore[arg-type]
    assert command is not None
    ctx = click.Context(command)
    ctx.params.update(params)
    (param,) = [each for each in command.params if words[1] in (*each.opts, each.name)]
    return [item.value for item in param.shell_complete(ctx, start)]


def test_completion_offers_what_begins_so(lake: Lake) -> None:
    put_jobs(lake, [job(1), job(2, cluster="cc"), job(3, cluster="d")])
    place = {"workspace": lake.workspace}
    assert completed("show", "--cluster", start="c", **place) == ["c", "cc"]
    assert completed("compare", "clusters", start="d", **place) == ["d"]
    assert completed("show", "--state", start="c") == ["completed", "cancelled"]
    assert completed("show", "--state", start="an") == ["any"]
    assert completed("show", "id", start="wait") == ["waits"]
    assert completed("show", "--param", start="m", id="think-time") == ["max_h="]
    assert completed("show", "--param", start="m", id="states") == []
    assert completed("show", "--param", start="max") == ["max_h="]
    assert completed("ingest", "--format", start="s") == ["sacct", "swf"]
    assert completed("simulate", "--policy", start="easy") == ["easy", "easy-sjbf", "easy++"]
    assert completed("advise", "--minimise", start="p9") == ["p95-wait", "p99-wait"]
    assert completed("advise", "--keep", start="util") == ["utilisation"]
    assert completed("compare", "--metric", start="wra_me") == ["wra_mean", "wra_median"]
    assert completed("compare", "--published", start="aa") == ["AAIC"]
    assert completed("compare", "--published", start="no") == ["none"]
    assert completed("compare", "--published", start="Kraken,no") == []


def test_json_holds_no_nan() -> None:
    assert without_nan({"a": [1.5, float("nan"), float("inf")]}) == {"a": [1.5, None, None]}
    assert cell("share", float("nan")) == "–"


def test_a_mistyped_verb() -> None:
    told = hakaru("shwo")
    assert told.exit_code == 2 and "there is no command 'shwo'; did you mean show?" in told.output
    hidden = hakaru("_options")
    assert hidden.exit_code == 2 and "there is no command '_options'" in hidden.output


def test_commands_are_listed_in_order_with_what_they_do() -> None:
    told = hakaru("-h").output
    names = main.list_commands(None)  # type: ignore[arg-type]
    assert names == sorted(names) and {"show", "ingest", "whatif"} < set(names)
    at = [told.index(f"\n  {name} ") for name in names]
    assert at == sorted(at) and "\n  _" not in told


def test_the_version_is_that_of_the_package() -> None:
    assert hakaru("--version").output == f"hakaru, version {version('hakaru')}\n"


@pytest.mark.parametrize(
    ("verb", "words", "said"),
    [
        ("show", ("show", "states"), "stopped\n"),
        ("report", ("report",), "stopped\n"),
        ("reproduce", ("reproduce", "aaic"), "stopped; nothing was stored\n"),
    ],
)
def test_an_interrupt_says_that_nothing_was_stored_where_something_would_have_been(
    log: Path, monkeypatch: pytest.MonkeyPatch, verb: str, words: tuple[str, ...], said: str
) -> None:
    def interrupt(*given: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hakaru.cli._progress.ingest_with_progress", interrupt)
    logs = (log,) if verb == "reproduce" else ("--from", log)
    done = hakaru(*words, *logs)
    assert (done.exit_code, done.stderr) == (130, said)


def test_a_reader_who_has_had_enough_is_no_error() -> None:
    command = [sys.executable, "-m", "hakaru", "analyses", "-v"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_too_many_arguments_are_files_only_where_logs_are_read() -> None:
    assert "quote the pattern" in hakaru("show", "states", "a.gz", "b.gz").output
    plain = hakaru("analyses", "a.gz", "b.gz")
    assert plain.exit_code == 2 and "quote" not in plain.output


def test_every_analysis_is_listed_with_its_question_and_parameters() -> None:
    short, verbose = hakaru("analyses").output, hakaru("analyses", "-v").output
    for analysis in load_all():
        assert any(line.split()[:1] == [analysis.id] for line in short.splitlines())
        assert analysis.answers in short and analysis.answers in verbose
        assert f"\n{analysis.id}\n" in f"\n{verbose}"
        assert " ".join(analysis.description.split()) in " ".join(verbose.split())
    assert "--param max_h=8.0: " in verbose and "--param max_h" not in short
    assert "  Reproduces AAIC Table 3 and section 5.3\n" in verbose
    for told in (short, verbose):
        assert told.endswith("\nShow one with: hakaru show ID --from LOGFILE\n")


def test_export_takes_the_filters_of_show(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.swf"
    common = ("export", "--from", log, "--format", "swf", "-o", out, "--overwrite")
    assert "wrote 1 of" in hakaru(*common, "--state", "failed").output
    assert "wrote 2 of" in hakaru(*common, "--min-run", "3600").output
