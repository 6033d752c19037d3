"""What all verbs share: help, completion, clear words for a mistake."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hakaru.cli import main
from hakaru.cli._output import without_nan
from hakaru.cli._render import cell
from tests._cli import hakaru


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


def test_json_holds_no_nan() -> None:
    assert without_nan({"a": [1.5, float("nan"), float("inf")]}) == {"a": [1.5, None, None]}
    assert cell("share", float("nan")) == "–"


def test_a_mistyped_verb() -> None:
    assert "did you mean show?" in hakaru("shwo").output


def test_export_takes_the_filters_of_show(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.swf"
    common = ("export", "--from", log, "--format", "swf", "-o", out, "--overwrite")
    assert "wrote 1 of" in hakaru(*common, "--state", "failed").output
    assert "wrote 2 of" in hakaru(*common, "--min-run", "3600").output
