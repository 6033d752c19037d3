"""`hakaru token`: how long a token lasts, what is listed, and users whom no log names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hakaru.lake import Lake
from hakaru.web.access.tokens import Tokens
from tests._cli import hakaru
from tests.conftest import job, put_jobs


def test_a_token_lasts_the_days_that_are_asked_for(tmp_path: Path) -> None:
    made = hakaru(
        "token", "create", "-w", tmp_path, "--name", "a", "--role", "operator", "--days", 30
    )
    (token,) = Tokens(tmp_path).all()
    assert token.expires is not None and token.expires - token.created == timedelta(days=30)
    assert made.stdout.startswith("hakaru_") and made.stdout.count("\n") == 1  # for $(…)
    assert f"a (operator) until {token.expires:%Y-%m-%d}" in made.stderr
    Tokens(tmp_path).create("old", "user", "ann", datetime(2018, 1, 1, tzinfo=UTC))
    lines = hakaru("token", "list", "-w", tmp_path).output.splitlines()
    listed = {line.split("│")[2].strip(): line for line in lines if line.count("│") > 5}
    assert "2018-01-01 00:00 (expired)" in listed["old"] and "ann" in listed["old"]
    assert "expired" not in listed["a"]


def test_a_token_for_a_user_whom_no_log_names_is_made_with_a_warning(lake: Lake) -> None:
    words = ("token", "create", "-w", lake.workspace, "--role", "user", "--name")
    early = hakaru(*words, "early", "--user", "ann")
    assert f"warning: no log in {lake.workspace} names the user 'ann'" in early.stderr
    put_jobs(lake, [job(1, user="ann")])
    wrong = hakaru(*words, "wrong", "--user", "nobody")
    assert "names the user 'nobody'" in wrong.stderr and "hakaru show users" in wrong.stderr
    assert wrong.stdout.startswith("hakaru_") and wrong.stdout.count("\n") == 1
    known = hakaru(*words, "right", "--user", "ann")
    assert "warning" not in known.stderr
    assert [token.name for token in Tokens(lake.workspace).all()] == ["early", "wrong", "right"]


def test_a_token_without_days_lasts_until_it_is_revoked(tmp_path: Path) -> None:
    words = ("token", "create", "-w", tmp_path, "--role", "operator", "--name", "a")
    assert hakaru("token", "list", "-w", tmp_path).stdout == (
        "no tokens; make one with: hakaru token create\n"
    )
    made = hakaru(*words)
    assert made.stderr == (
        "a (operator) until it is revoked. It is not shown again: keep it safe.\n"
    )
    (token,) = Tokens(tmp_path).all()
    assert (token.expires, token.role, token.user) == (None, "operator", None)
    lines = hakaru("token", "list", "-w", tmp_path).output.splitlines()
    (row,) = [line.split("│")[1:-1] for line in lines if line.count("│") > 5]
    assert [cell.strip() for cell in row] == [
        token.id, "a", "operator", "–", f"{token.created:%Y-%m-%d %H:%M}", "never",
    ]  # fmt: skip
    assert made.stdout.strip() not in "".join(lines)
    heads = next(line for line in lines if "created (UTC)" in line)
    assert [cell.strip() for cell in heads.replace("┃", "│").split("│")[1:-1]] == [
        "id", "name", "role", "user", "created (UTC)", "expires (UTC)",
    ]  # fmt: skip


def test_a_token_is_revoked_by_its_name(tmp_path: Path) -> None:
    words = ("token", "create", "-w", tmp_path, "--role", "operator", "--name")
    hakaru(*words, "a")
    hakaru(*words, "b")
    assert hakaru("token", "revoke", "-w", tmp_path, "a").stdout == "revoked a (operator)\n"
    assert [token.name for token in Tokens(tmp_path).all()] == ["b"]
    gone = hakaru("token", "revoke", "-w", tmp_path, "a")
    assert gone.exit_code == 1 and gone.stderr.startswith("error: ")


@pytest.mark.parametrize(("days", "code"), [(0, 2), (1, 0), (3650, 0), (3651, 2)])
def test_a_token_lasts_from_a_day_to_ten_years(tmp_path: Path, days: int, code: int) -> None:
    words = ("token", "create", "-w", tmp_path, "--role", "operator", "--name", "a")
    assert hakaru(*words, "--days", days).exit_code == code


def test_a_token_needs_a_name_and_a_role(tmp_path: Path) -> None:
    assert hakaru("token", "create", "-w", tmp_path, "--name", "a").exit_code == 2
    assert hakaru("token", "create", "-w", tmp_path, "--role", "user").exit_code == 2
    nobody = hakaru("token", "create", "-w", tmp_path, "--name", "a", "--role", "user")
    assert nobody.exit_code == 1 and not Tokens(tmp_path).all()


@pytest.mark.parametrize("verb", ["create", "revoke"])
def test_a_folder_that_cannot_be_written(tmp_path: Path, verb: str) -> None:
    """/proc refuses even root, as a read-only disk does."""
    words = ("--name", "a", "--role", "operator") if verb == "create" else ("a",)
    for workspace in (Path("/proc"), tmp_path / "file" / "below"):
        (tmp_path / "file").touch()
        done = hakaru("token", verb, "-w", workspace, *words)
        assert done.exit_code == 1 and done.stdout == ""
        assert done.stderr.startswith(f"error: {workspace / 'tokens.json'} cannot be written: ")
        assert "choose another one with --workspace" in done.stderr
