"""Where a guess must decide: units, per node or in total, what sets jobs apart, and what is unsure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hakaru.sources.table import guess
from tests.sources.table._site import Site, picked

AT = 1554076800


def log(folder: Path, *columns: tuple[str, list[Any]]) -> Path:
    """A log with these columns; ids and submit times, an hour apart, are added."""
    names = ["id", "submit", *(name for name, _ in columns)]
    num = max(len(values) for _, values in columns)
    rows = [[i, AT + 3600 * i, *(values[i] for _, values in columns)] for i in range(num)]
    path = folder / "log.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]) + "\n")
    return path


def line_of(text: str, canonical: str) -> str | None:
    found = [row for row in text.splitlines() if row.startswith(f"{canonical} = ")]
    return found[0].split(" = ", 1)[1].split("  #")[0] if found else None


def unsure(text: str, what: str) -> str | None:
    head = text.split("[columns]")[0].split("# The first")[0].splitlines()
    found = [row for row in head if row.startswith(f"#   {what}: ")]
    return found[0].split(": ", 1)[1] if found else None


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        ([2, 4095], "GB"),
        ([2, 4096], "MiB"),
        ([2, 512_000], "MiB"),
        ([4096, 134_217_728], "KiB"),  # 128 GiB
        ([4096, 68_719_476_736], "B"),  # 64 GiB
    ],
)
def test_the_unit_of_memory_by_the_greatest_job(
    tmp_path: Path, values: list[int], unit: str
) -> None:
    text = guess(log(tmp_path, ("mem", values)))
    assert line_of(text, "memory_mib") == f'{{ column = "mem", unit = "{unit}" }}'
    assert (unsure(text, "memory_mib") is None) == (unit == "B")


@pytest.mark.parametrize(
    ("memory", "written"),
    [
        (["4Gn", "8Gn"], '{ column = "ReqMem", unit = "size", times = "ReqNodes" }'),
        (["4Gc", "8Gc"], '{ column = "ReqMem", unit = "size", times = "ReqCPUS" }'),
        (["4G", "8G"], '{ column = "ReqMem", unit = "size" }'),
    ],
)
def test_memory_per_node_and_per_cpu(tmp_path: Path, memory: list[str], written: str) -> None:
    text = guess(log(tmp_path, ("ReqNodes", [1, 2]), ("ReqCPUS", [4, 8]), ("ReqMem", memory)))
    assert line_of(text, "memory_mib") == written
    assert unsure(text, "memory_mib") is None


def test_memory_that_mixes_both_is_unsure(tmp_path: Path) -> None:
    columns = (("ReqNodes", [1, 2]), ("ReqCPUS", [4, 8]), ("ReqMem", ["4Gn", "8Gc"]))
    text = guess(log(tmp_path, *columns))
    assert line_of(text, "memory_mib") == '{ column = "ReqMem", unit = "size" }'
    assert "per node (n) or per CPU (c)" in str(unsure(text, "memory_mib"))


def test_a_duration_that_often_differs_from_its_times_is_unsure(tmp_path: Path) -> None:
    start, end = [AT + 4000] * 4, [AT + 4600] * 4
    columns = (("start", start), ("end", end), ("elapsed", [600, 600, 90, 90]))
    text = guess(log(tmp_path, *columns))
    assert line_of(text, "run_s") == '{ column = "elapsed", unit = "s" }'
    assert unsure(text, "run_s") == 'the unit of "elapsed" is unknown'
    named = guess(log(tmp_path, *columns[:2], ("elapsed_s", [600, 600, 600, 90])))
    assert unsure(named, "run_s") == '"elapsed_s" is not end - start in 25% of the rows'


def test_times_outweigh_the_unit_in_a_name(tmp_path: Path) -> None:
    start, end = [AT + 4000] * 2, [AT + 4600, AT + 7600]
    text = guess(log(tmp_path, ("start", start), ("end", end), ("run_time_s", [10, 60])))
    assert line_of(text, "run_s") == '{ column = "run_time_s", unit = "min" }'
    assert unsure(text, "run_s") == "its name says s, but start and end say min"


def test_a_wait_is_held_against_submission_and_start(tmp_path: Path) -> None:
    start, end = [AT + 600, AT + 3600 + 1200], [AT + 90_000, AT + 90_000]
    text = guess(log(tmp_path, ("start", start), ("end", end), ("wait", [10, 20])))
    assert line_of(text, "wait_s") == '{ column = "wait", unit = "min" }'


def test_a_duration_without_times_has_the_unit_of_the_times(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"id,submit,duration\n1,{AT}000,60000\n2,{AT}500,30000\n")
    text = guess(path)
    assert line_of(text, "run_s") == '{ column = "duration", unit = "ms" }'
    assert unsure(text, "run_s") == 'the unit of "duration" is unknown'


def test_zero_is_no_limit_and_minus_one_no_count(tmp_path: Path) -> None:
    start, end = [AT + 20_000] * 3, [AT + 20_600] * 3
    columns = (("start", start), ("end", end), ("limit", [0, 900, 1200]), ("gpus", [1, -1, 4]))
    text = guess(log(tmp_path, *columns))
    assert line_of(text, "requested_s") == '{ column = "limit", unit = "s", missing = ["0"] }'
    assert line_of(text, "num_gpus") == '{ column = "gpus", missing = ["-1"] }'
    assert line_of(guess(log(tmp_path, ("gpus", [1, -2]))), "num_gpus") is None


@pytest.mark.parametrize(
    ("values", "written", "why"),
    [
        ([1, 5000], '"nodes"', None),
        ([1, 5_000_000], None, '"nodes" does not look like a number of nodes: some are too large'),
        ([1, 2.5], None, '"nodes" does not look like a number of nodes: some are not whole'),
    ],
)
def test_a_number_of_nodes_is_whole_and_believable(
    tmp_path: Path, values: list[float], written: str | None, why: str | None
) -> None:
    text = guess(log(tmp_path, ("nodes", values)))
    assert (line_of(text, "num_nodes"), unsure(text, "num_nodes")) == (written, why)


@pytest.mark.parametrize(
    ("canonical", "name", "values", "written", "why"),
    [
        ("num_nodes", "node", [0, 6], None, "of nodes: some are 0, so it may say which one"),
        ("num_nodes", "Host", [1, 6], '"Host"', '"Host" may say which one, not how many'),
        ("num_nodes", "node", ["n1", "n2"], None, None),
        ("num_nodes", "nodes", [1, 6], '"nodes"', None),
        ("num_cpus", "cpu", [0, 6], None, "of CPUs: some are 0, so it may say which one"),
        ("num_cpus", "core", [1, 6], '"core"', '"core" may say which one, not how many'),
        ("num_gpus", "gpu", [0, 6], '"gpu"', '"gpu" may say which one, not how many'),
        ("num_gpus", "gpus", [0, 6], '"gpus"', None),
        ("num_gpus", "gpus", [1, -2], None, "of GPUs: some are negative"),
    ],
)
def test_which_node_or_device_is_not_how_many(
    tmp_path: Path,
    canonical: str,
    name: str,
    values: list[Any],
    written: str | None,
    why: str | None,
) -> None:
    text = guess(log(tmp_path, (name, values)))
    told = f'"{name}" does not look like a number {why}' if why and why[:3] == "of " else why
    assert (line_of(text, canonical), unsure(text, canonical)) == (written, told)


def test_a_job_on_no_node_is_unknown_and_an_index_leaves_the_count_to_others(
    tmp_path: Path,
) -> None:
    text = guess(log(tmp_path, ("node", [1, 2]), ("node_count", [0, 4]), ("cpu", [1, 2])))
    assert line_of(text, "num_nodes") == '{ column = "node_count", missing = ["0"] }'
    assert unsure(text, "num_nodes") == '"node_count" is 0 in some rows, read as unknown'
    requested = guess(log(tmp_path, ("cpu", [1, 2]), ("req_cpus", [8, 8])))
    assert line_of(requested, "num_cpus") == '"req_cpus"'


def test_node_names_are_a_list_of_nodes(tmp_path: Path) -> None:
    assert line_of(guess(log(tmp_path, ("node", ["n1", "n2"]))), "nodes") == '"node"'


def test_a_few_bad_cells_do_not_hide_what_a_column_is(tmp_path: Path) -> None:
    text = guess(log(tmp_path, ("gpus", [*([2] * 39), "two"])))
    assert line_of(text, "num_gpus") == '"gpus"'
    assert unsure(text, "rows") == (
        "1 of 40 rows would be rejected; line 41: gpus: 'two' is not a whole number"
    )


def test_rows_that_cannot_be_read_are_no_examples(tmp_path: Path) -> None:
    text = guess(log(tmp_path, ("gpus", ["two", *([2] * 39)])))
    (shown,) = (row for row in text.splitlines() if row.startswith("#   num_gpus "))
    assert shown.split()[2:] == ["2", "2", "2"]


def test_gpus_in_the_hundreds_of_a_node_are_unsure(tmp_path: Path) -> None:
    text = guess(log(tmp_path, ("nodes", [1, 1]), ("gpus", [8, 65])))
    assert unsure(text, "num_gpus") == "some jobs have more than 64 GPUs on a node"
    assert unsure(guess(log(tmp_path, ("nodes", [1, 1]), ("gpus", [8, 64]))), "num_gpus") is None
    # of two doubts the first is said: the second would be whether they are per node
    text = guess(log(tmp_path, ("nodes", [1, 2]), ("gpus", [8, 130])))
    assert unsure(text, "num_gpus") == "some jobs have more than 64 GPUs on a node"


@pytest.mark.parametrize(
    ("num_odd", "entry"), [(1, '"gpus"'), (2, '{ column = "gpus", times = "nodes" }')]
)
def test_gpus_are_per_node_where_more_than_a_tenth_is_no_multiple(
    tmp_path: Path, num_odd: int, entry: str
) -> None:
    """Of ten jobs on two nodes; a job on one node says nothing."""
    gpus = [3] * num_odd + [4] * (10 - num_odd)
    path = log(tmp_path, ("nodes", [2] * 10 + [1] * 10), ("gpus", gpus + [1] * 10))
    assert line_of(guess(path), "num_gpus") == entry
    total = log(tmp_path, ("nodes", [2] * 10 + [1] * 10), ("total_gpus", gpus + [1] * 10))
    assert line_of(guess(total), "num_gpus") == '"total_gpus"'


def test_rows_that_would_be_rejected_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    text = guess(log(tmp_path, ("gpus", ["two", *([2] * 38), "three"])))
    told = "2 of 40 rows would be rejected; line 2: gpus: 'two' is not a whole number"
    assert unsure(text, "rows") == told


def test_terminated_beside_completed_is_killed(site: Site, tmp_path: Path) -> None:
    path = log(tmp_path, ("state", ["Completed", "Terminated"]))
    site.read(path, guess(path))
    assert picked(site.jobs(), "state") == [("completed",), ("killed",)]


# ---- what sets apart the rows of one id


def tasks(folder: Path, **columns: list[Any]) -> str:
    """The guess for four rows of one id and one submit time, with other ends."""
    path = folder / "log.csv"
    names = ["job", "submit", "end", *columns]
    rows = [[7, AT, AT + 60 * i, *(values[i] for values in columns.values())] for i in range(4)]
    path.write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]) + "\n")
    return guess(path)


def test_of_two_columns_the_one_that_sets_rows_apart_joins_the_id(tmp_path: Path) -> None:
    text = tasks(tmp_path, step=[1, 1, 2, 2], idx=[1, 2, 3, 4])
    assert line_of(text, "job_id") == '["job", "idx"]'
    assert line_of(tasks(tmp_path, number=[0, 1, 2, 3]), "job_id") == '["job", "number"]'


def test_a_column_of_tasks_comes_before_one_of_attempts_and_that_before_a_number(
    tmp_path: Path,
) -> None:
    """All three set the rows apart; the name decides, not the place."""
    apart = [0, 1, 2, 3]
    text = tasks(tmp_path, number=apart, attempt=apart, taskid=apart)
    assert line_of(text, "job_id") == '["job", "taskid"]'
    assert line_of(tasks(tmp_path, number=apart, attempt=apart), "job_id") == '["job", "attempt"]'


def test_relative_times_may_be_unknown(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("job,submit,start\n1,0,10\n2,60,-1\n3,90,100\n")
    text = guess(path)
    assert line_of(text, "started_at") == '{ column = "start", unit = "s", missing = ["-1"] }'
    assert line_of(text, "submitted_at") == '{ column = "submit", unit = "s" }'


def test_a_state_that_is_not_known_leaves_the_others(tmp_path: Path) -> None:
    text = guess(log(tmp_path, ("status", ["DONE", "DONE", "WEIRD"])))
    assert line_of(text, "state") == '"status"'
    assert '"DONE" = "completed"  # rows: 2' in text.splitlines()
    assert '# "WEIRD" = "…"  # rows: 1' in text.splitlines()
    assert unsure(text, "state") == "some words are not known: see [states]"


def test_a_measurement_is_no_index(tmp_path: Path) -> None:
    text = tasks(tmp_path, priority=[700, 701, 703, 709])
    assert line_of(text, "job_id") == '"job"'
    assert str(unsure(text, "job_id")).startswith("3 rows have the id and submit time of another")


def test_the_same_row_twice_needs_no_other_id(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"job,task,submit\n1,1,{AT}\n1,1,{AT}\n2,1,{AT}\n")
    text = guess(path)
    assert line_of(text, "job_id") == '"job"' and unsure(text, "job_id") is None


def test_names_are_ids_only_where_each_is_unique(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"job_name,submit\na,{AT}\nb,{AT}\n")
    assert line_of(guess(path), "job_id") == '"job_name"'
    path.write_text(f"job_name,submit\na,{AT}\na,{AT + 1}\n")
    assert line_of(guess(path), "job_id") == "{ line = true }"
