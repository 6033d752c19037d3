"""Pseudonyms: none of the names leaves, the same salt gives the same ones, and times move by whole weeks."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hakaru.errors import HakaruError
from hakaru.export import make_disguise
from hakaru.lake import Lake
from tests.conftest import job, utc
from tests.export._roundtrip import SECRETS, all_bytes, export, hakaru, small_lake, write_rows

SALT = "a salt of some length"


def rows_of(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def pseudonym(kind: str, name: str) -> str:
    key = hashlib.pbkdf2_hmac("sha256", SALT.encode(), b"hakaru export", 200_000)
    return kind + hmac.digest(key, f"{kind}:{name}".encode(), "sha256").hex()[:16]


@pytest.mark.parametrize("format", ["aaic", "swf", "parquet"])
def test_no_name_occurs_anywhere_in_the_export(format: str, tmp_path: Path) -> None:
    lake = small_lake(tmp_path / "lake")
    export(lake, tmp_path / "plain", "parquet")
    held = all_bytes(tmp_path / "plain")
    assert all(secret.encode() in held for secret in SECRETS)  # the search would find them
    where = "name LIKE 'secret-name%' OR user IN ('anneliese', 'bo-tanaka')"
    options = ("--anonymise", "--salt", SALT, "--shift-times", "364", "--where", where)
    manifest = export(lake, tmp_path / "out", format, *options)
    held = all_bytes(tmp_path / "out")
    for secret in (*SECRETS, SALT):
        assert secret.encode() not in held, secret
    assert "364" not in json.dumps({key: manifest[key] for key in manifest if key != "files"})
    assert manifest["filters"] == "not told, as they may name someone"


def test_pseudonyms_are_hmacs_of_the_names(tmp_path: Path) -> None:
    lake = small_lake(tmp_path / "lake")
    export(lake, tmp_path / "a.parquet", "parquet", "--anonymise", "--salt", SALT)
    rows = rows_of(tmp_path / "a.parquet")
    one = next(row for row in rows if row["job_id"] == pseudonym("j", "1"))
    assert one["user"] == pseudonym("u", "anneliese")
    assert one["account"] == pseudonym("g", "chem-lab")
    assert one["qos"] == pseudonym("q", "vip-qos")
    assert one["nodes"] == [pseudonym("n", "gpunode01")]
    assert one["gpu_ids"] == [pseudonym("n", "gpunode01") + index for index in (":0", ":3")]
    assert (one["name"], one["modules"], one["application"]) == (None, None, "pytorch")
    assert (one["queue"], one["state"], one["num_gpus"]) == ("normal", "completed", 2)
    fifth = next(row for row in rows if row["job_id"] == pseudonym("j", "5"))
    assert fifth["gpu_ids"] == [pseudonym("d", "GPU-8f3a-0001")]
    arrays = [row["array_id"] for row in rows if row["array_id"]]
    assert arrays == [pseudonym("a", "77")] * 2


def test_the_same_salt_links_exports_and_no_salt_does_not(tmp_path: Path) -> None:
    lake = small_lake(tmp_path / "lake")
    (tmp_path / "salt.txt").write_text(SALT + "\n")
    variants = {
        "whole": ("--salt", SALT),
        "part": ("--salt-file", tmp_path / "salt.txt", "--since", "2018-04-01"),
        "random": (),
        "again": (),
    }
    users = {}
    for name, options in variants.items():
        export(lake, tmp_path / f"{name}.parquet", "parquet", "--anonymise", *options)
        users[name] = {row["user"] for row in rows_of(tmp_path / f"{name}.parquet")}
    assert (
        users["whole"] == users["part"] == {pseudonym("u", u) for u in ("anneliese", "bo-tanaka")}
    )
    assert users["random"].isdisjoint(users["again"] | users["whole"])
    told = json.loads((tmp_path / "random.manifest.json").read_text())
    assert told["anonymised"]["salt"].startswith("random and not kept")


def test_a_period_is_not_told_beside_times_that_moved(tmp_path: Path) -> None:
    """The first day asked for, beside the first that is written, would give the shift."""
    lake = small_lake(tmp_path / "lake")
    for number, options in enumerate((("--since", "2018-04-01"), ("--until", "2018-04-30"))):
        path = tmp_path / f"{number}.parquet"
        manifest = export(lake, path, "parquet", "--anonymise", "--salt", SALT, *options)
        assert manifest["filters"] == "not told, as they may name someone"


def test_ids_of_a_log_keep_their_two_parts(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    lake = lake_of([job("a/7"), job("b/7"), job("a/8")])
    export(lake, tmp_path / "x.parquet", "parquet", "--anonymise", "--salt", SALT)
    ids = {row["job_id"] for row in rows_of(tmp_path / "x.parquet")}
    pairs = (("a", "a/7"), ("b", "b/7"), ("a", "a/8"))
    assert ids == {f"{pseudonym('x', log)}/{pseudonym('j', id)}" for log, id in pairs}


def test_times_move_on_the_sites_clock(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    """18 weeks on from 10:00 in New York's winter (UTC-5) it is 10:00 in its summer (UTC-4)."""
    times = {"submitted_at": utc("2018-01-01T15:00:00"), "eligible_at": utc("2018-01-01T15:00:03")}
    times |= {"started_at": utc("2018-01-01T15:00:10"), "ended_at": utc("2018-01-01T16:00:10")}
    since = '[{"since": "2018-01-01", "count": 2}]'
    sizes = f'"nodes": {since}, "gpus": {since}, "cpus": {since}'
    facts = f'{{"zone": "America/New_York", {sizes}}}'
    lake = lake_of([job(1, **times)], facts)
    options = ("--anonymise", "--shift-times", "126")
    manifest = export(lake, tmp_path / "x.parquet", "parquet", *options)
    (row,) = rows_of(tmp_path / "x.parquet")
    assert [row[name] for name in times] == [
        utc("2018-05-07T14:00:00"),
        utc("2018-05-07T14:00:03"),
        utc("2018-05-07T14:00:10"),
        utc("2018-05-07T15:00:10"),
    ]
    assert (row["wait_s"], row["run_s"]) == (10.0, 3600.0)
    for size in ("nodes", "gpus", "cpus"):  # one that stays would give the shift away
        assert manifest["settings"][size] == [{"since": "2018-05-07T00:00:00-04:00", "count": 2}]
    assert "126" not in json.dumps(manifest["times"])


def test_a_random_shift_is_whole_weeks_and_follows_the_salt() -> None:
    days = make_disguise(SALT, "random").shift_days
    assert days % 7 == 0
    assert 7 <= days <= 3640
    assert make_disguise(SALT, "random").shift_days == days
    key = hashlib.pbkdf2_hmac("sha256", SALT.encode(), b"hakaru export", 200_000)
    drawn = int.from_bytes(hmac.digest(key, b"shift", "sha256")[:8], "big")
    assert days == 7 * (1 + drawn % 520), "an export of an earlier version moved by as much"
    assert make_disguise(SALT, None).shift_days == 0
    assert len({make_disguise(None, "random").shift_days for _ in range(20)}) > 1


def test_a_salt_of_eight_characters_is_enough() -> None:
    assert make_disguise("12345678", None).key != make_disguise("12345679", None).key
    with pytest.raises(HakaruError, match="has 7 characters; it needs at least 8"):
        make_disguise("1234567", None)


def test_times_move_back_as_far_as_1970(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    """2018 began 17,532 days after 1970: 2,504 weeks before is 5 January 1970, one more is not."""
    lake = lake_of([job(1), job(2, submitted_at=utc("2019-06-01T00:00:00"))])
    export(lake, tmp_path / "x.parquet", "parquet", "--anonymise", "--shift-times", "-17528")
    first = min(row["submitted_at"] for row in rows_of(tmp_path / "x.parquet"))
    assert first == utc("1970-01-05T00:00:00")
    command = ("export", "-w", lake.workspace, "-o", tmp_path / "y.parquet", "--format", "parquet")
    refused = hakaru(*command, "--anonymise", "--shift-times", "-17535")
    assert refused.exit_code == 1 and "before 1970" in refused.output


def test_the_first_job_stays_after_the_first_day_of_1970(tmp_path: Path) -> None:
    """A zone may be a day behind: 2 January 1970 is the first moment that is taken."""
    disguise = make_disguise(SALT, "-7")
    late = job(2, submitted_at=utc("2018-01-01T00:00:00"))
    first = job(1, submitted_at=utc("1970-01-09T00:00:00"))
    write_rows([late, first], "parquet", tmp_path / "x.parquet", disguise=disguise)
    moved = sorted(row["submitted_at"] for row in rows_of(tmp_path / "x.parquet"))
    assert moved == [utc("1970-01-02T00:00:00"), utc("2017-12-25T00:00:00")]
    early = first | {"submitted_at": utc("1970-01-08T23:59:59")}
    with pytest.raises(HakaruError, match="--shift-times -7 would move the first job to before"):
        write_rows([late, early], "parquet", tmp_path / "y.parquet", disguise=disguise)
    on = make_disguise(SALT, "7")
    write_rows([first], "parquet", tmp_path / "z.parquet", disguise=on)
    (row,) = rows_of(tmp_path / "z.parquet")
    assert row["submitted_at"] == utc("1970-01-16T00:00:00")


def test_what_is_unknown_has_no_pseudonym(tmp_path: Path) -> None:
    unknown = {"user": None, "account": None, "queue": None}
    disguise = make_disguise(SALT, None)
    write_rows([job("a/1", **unknown)], "parquet", tmp_path / "x.parquet", disguise=disguise)
    (row,) = rows_of(tmp_path / "x.parquet")
    hidden = ("user", "account", "qos", "array_id", "nodes", "gpu_ids", "name", "modules")
    assert [row[name] for name in hidden] == [None] * 8


def test_gpus_of_a_node_keep_their_index(tmp_path: Path) -> None:
    """Also of a node whose name has a colon; a UUID has none, though it ends in digits."""
    gpus = ["rack:2:11", "n1:0", "GPU-12"]
    disguise = make_disguise(SALT, None)
    rows = [job(1, nodes=["rack:2", "n1"], gpu_ids=gpus)]
    write_rows(rows, "parquet", tmp_path / "x.parquet", disguise=disguise)
    (row,) = rows_of(tmp_path / "x.parquet")
    assert row["nodes"] == [pseudonym("n", "rack:2"), pseudonym("n", "n1")]
    assert row["gpu_ids"] == [
        pseudonym("n", "rack:2") + ":11",
        pseudonym("n", "n1") + ":0",
        pseudonym("d", "GPU-12"),
    ]


def test_a_slash_in_a_name_is_no_log(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    """Only a name that has its job's log before it keeps the log's pseudonym."""
    lake = lake_of([job("a/7", user="a/5", account="lab/x"), job("b/7", user="x", account="b/3")])
    export(lake, tmp_path / "x.parquet", "parquet", "--anonymise", "--salt", SALT)
    rows = {(row["user"], row["account"]) for row in rows_of(tmp_path / "x.parquet")}
    assert rows == {
        (f"{pseudonym('x', 'a')}/{pseudonym('u', 'a/5')}", pseudonym("g", "lab/x")),
        (pseudonym("u", "x"), f"{pseudonym('x', 'b')}/{pseudonym('g', 'b/3')}"),
    }


def test_the_manifest_says_what_became_of_each_column(tmp_path: Path) -> None:
    """SWF numbers users, has no place for nodes, and free text is removed: each is said once."""
    lake = small_lake(tmp_path / "lake")
    manifest = export(lake, tmp_path / "out", "swf", "--anonymise", "--salt", SALT)
    columns = manifest["columns"]
    assert columns["removed"] == {"name": "free text", "modules": "free text"}
    assert columns["replaced"] == {
        "job_id": "numbered from 1, by time of submission",
        "user": "numbered from 1, by first appearance",
        "account": "numbered from 1, by first appearance",
        "application": "numbered from 1, by first appearance",
    }
    assert columns["not_in_format"] == {
        "array_id": "2 jobs have it",
        "qos": "4 jobs have it",
        "exit_code": "1 jobs have it",
        "num_nodes": "9 jobs have it",
        "gpu_model": "1 jobs have it",
        "eligible_at": "1 jobs have it",
        "nodes": "2 jobs have it",
        "gpu_ids": "2 jobs have it",
        "num_cpus": "1 jobs have it",
    }
    assert manifest["filters"] == {} and manifest["times"] == "as they are"
    assert manifest["anonymised"]["salt"].startswith("given and not written anywhere")
    plain = export(lake, tmp_path / "plain", "parquet")
    assert plain["columns"] == {"replaced": {}, "removed": {}, "not_in_format": {}}
    assert plain["anonymised"] is False


@pytest.mark.parametrize("shift", ["36498", "-36498", "7", "-7"])
def test_a_shift_of_whole_weeks(shift: str) -> None:
    assert make_disguise(SALT, shift).shift_days == int(shift)


@pytest.mark.parametrize("shift", ["10", "0", "soon", "7.0", "36505", "-36505"])
def test_a_shift_that_is_not_whole_weeks_is_refused(shift: str) -> None:
    with pytest.raises(HakaruError, match="whole weeks in days such as 364"):
        make_disguise(SALT, shift)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--salt", SALT), "--salt needs --anonymise"),
        (("--shift-times", "7"), "--shift-times needs --anonymise"),
        (("--anonymise", "--salt", "short"), "has 5 characters; it needs at least 8"),
        (("--anonymise", "--salt", SALT, "--salt-file", "x"), "not both"),
        (("--anonymise", "--salt-file", "no-such-file"), "no-such-file: the salt cannot be read"),
        (("--anonymise", "--shift-times", "-36470"), "before 1970"),
    ],
)
def test_wrong_options(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    lake = small_lake(tmp_path / "lake")
    command = ("export", "-w", lake.workspace, "-o", tmp_path / "out", "--format", "swf", *options)
    result = hakaru(*command)
    assert result.exit_code == 1
    assert message in result.output
    assert not (tmp_path / "out" / "manifest.json").exists()
