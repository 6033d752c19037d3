"""Slurm's words as DuckDB expressions: states, times, durations, counts, TRES strings, node and task lists.

Each function takes the SQL of a text and gives the SQL of a value, null where the text is null or not of its
grammar; the caller tells the two apart.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from hakaru.engine.dialect import quote

# what to run on a site of Slurm; README.md and docs/slurm.md have it too
COMMAND = (
    "SLURM_BITSTR_LEN=0 SLURM_TIME_FORMAT=%s sacct -a -D -P --noconvert --delimiter=$'\\x1f' "
    "-S 2024-01-01 -o JobID,JobIDRaw,User,Account,Partition,QOS,State,ExitCode,NNodes,AllocTRES,"
    "ReqTRES,NCPUS,ReqMem,TimelimitRaw,Submit,Eligible,Start,End,ElapsedRaw,NodeList,JobName"
)

STATES: dict[str, str] = {
    "PENDING": "pending",
    "REQUEUE_HOLD": "pending",
    "REQUEUE_FED": "pending",
    "RESV_DEL_HOLD": "pending",
    "RUNNING": "running",
    "SUSPENDED": "running",
    "CONFIGURING": "running",
    "COMPLETING": "running",
    "SIGNALING": "running",
    "STAGE_OUT": "running",
    "STOPPED": "running",
    # A resize closes the record and opens another: this part of the job ended, and ended well.
    "RESIZING": "completed",
    "COMPLETED": "completed",
    "FAILED": "failed",
    "SPECIAL_EXIT": "failed",
    "LAUNCH_FAILED": "failed",
    "RECONFIG_FAIL": "failed",
    "TIMEOUT": "timeout",
    # The latest end that the user allowed was reached: a limit of time, as TIMEOUT is.
    "DEADLINE": "timeout",
    "CANCELLED": "cancelled",
    # A sibling in a federation started instead.
    "REVOKED": "cancelled",
    "OUT_OF_MEMORY": "out_of_memory",
    "NODE_FAIL": "node_failed",
    "BOOT_FAIL": "node_failed",
    "PREEMPTED": "preempted",
    # Stopped from outside, by the scheduler or an operator, to run again as a row of its own.
    "REQUEUED": "preempted",
}

# Slurm is of 2002
FIRST_DAY, NUM_DAYS = datetime(2000, 1, 1, tzinfo=UTC), 60 * 365
LOCAL_TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{5,8}"
COUNT = r"[0-9]+(\.[0-9]+)?[KMGTP]?"
RANGE = r"[0-9]{1,9}(-[0-9]{1,9})?"
NODE_LIST = rf"([^,\[\]\s]|\[{RANGE}(,{RANGE})*\])+(,([^,\[\]\s]|\[{RANGE}(,{RANGE})*\])+)*"
NODE_LIST_ITEM = r"(?:[^,\[\]]+|\[[^\]]*\])+"
TASK_RANGE = r"[0-9]{1,7}(-[0-9]{1,7}(:[1-9][0-9]{0,6})?)?"
TASKS = rf"[0-9]+_\[{TASK_RANGE}(,{TASK_RANGE})*(%[0-9]+)?\]"
MOST_NODES = 65536
NODE_DIMENSIONS = 3


def state_word(text: str) -> str:
    """`CANCELLED by 61001` is `CANCELLED`."""
    return f"rtrim(split_part(upper({text}), ' ', 1), '+')"


def state(word: str) -> str:
    cases = " ".join(f"WHEN {quote(slurm)} THEN {quote(ours)}" for slurm, ours in STATES.items())
    return f"CASE {word} {cases} END"


def exit_code(text: str) -> str:
    """`3:0` is 3 and `0:9` is 128 + 9, as a shell would say."""
    code, signal = (f"TRY_CAST(split_part({text}, ':', {i}) AS BIGINT)" for i in (1, 2))
    return f"CASE WHEN {signal} > 0 THEN 128 + {signal} WHEN {signal} = 0 THEN {code} END"


def moment(text: str, zone: str | None) -> str:
    """Epoch seconds, or the client's local time without an offset, if it has a zone."""
    epoch = f"to_timestamp(TRY_CAST({text} AS BIGINT))"
    local = f"WHEN regexp_full_match({text}, '{LOCAL_TIME}') THEN {_first(text, zone)}"
    return (
        f"CASE WHEN regexp_full_match({text}, '[0-9]{{1,11}}') THEN {epoch} "
        f"{local if zone else ''} END"
    )


def moment_again(text: str, zone: str | None) -> str:
    """The second moment at which clocks showed a local time, where they were put back; else null."""
    if zone is None or not _days_changed(zone):
        return "CAST(NULL AS TIMESTAMPTZ)"
    return f"CASE WHEN {_is_repeated(text, zone)} THEN {_later(text, zone)} END"


def is_skipped(text: str, zone: str | None) -> str:
    """Whether clocks never showed a local time, as they were put forward over it."""
    if zone is None or not (days := _days_changed(zone, forward=True)):
        return "false"
    return (
        f"CASE WHEN left({text}, 10) IN ({', '.join(map(quote, days))}) THEN "
        f"{_later(text, zone)} AT TIME ZONE {quote(zone)} <> TRY_CAST({text} AS TIMESTAMP) "
        "ELSE false END"
    )


def duration_s(text: str) -> str:
    """`[D-]HH:MM:SS`, `MM:SS`, and with days also `D-HH` and `D-HH:MM`."""
    grammar = r"[0-9]{1,6}-[0-9]{1,2}(:[0-9]{1,2}){0,2}|[0-9]{1,9}(:[0-9]{1,2}){1,2}(\.[0-9]+)?"
    days = f"CAST(regexp_extract({text}, '^([0-9]+)-', 1) AS BIGINT) * 86400"
    clock = f"string_split(regexp_replace({text}, '^[0-9]+-', ''), ':')"
    sixties = (
        f"list_reduce(list_transform({clock}, lambda x: CAST(x AS DOUBLE)), "
        "lambda a, b: a * 60 + b)"
    )
    return (
        f"CASE WHEN NOT regexp_full_match({text}, {quote(grammar)}) THEN NULL "
        f"WHEN contains({text}, '-') THEN {days} + {sixties} * pow(60, 3 - len({clock})) "
        f"ELSE {sixties} END"
    )


def count(text: str) -> str:
    """A whole number; without --noconvert 2048 nodes are `2K`. One too large to be a number is 10^15."""
    scaled = _scaled(text, "KMGTP")
    return f"CAST(CASE WHEN {scaled} > 1e15 THEN 1e15 ELSE round({scaled}) END AS BIGINT)"


def mib(text: str) -> str:
    """Memory such as `4096M`, `1.50G` or, without a unit, MiB."""
    return f"{_scaled(text, 'KMGTP')} / CASE WHEN {text} SIMILAR TO '.*[KMGTP]' THEN 1048576 ELSE 1 END"


def tres(text: str, name: str) -> str:
    """The amount of one resource, as text, out of `billing=1,cpu=1,mem=4G,node=1`."""
    return f"nullif(regexp_extract({text}, {quote(f'(?:^|,){name}=({COUNT})(?:,|$)')}, 1), '')"


def num_gpus(text: str) -> str:
    """`gres/gpu` counts them all; the typed entries beside it count the same ones again."""
    typed = f"regexp_extract_all({text}, {quote(f'(?:^|,)gres/gpu:[^=,]+=({COUNT})')}, 1)"
    total = f"list_sum(list_transform({typed}, lambda x: {count('x')}))"
    return (
        f"CASE WHEN contains(',' || {text}, ',gres/gpu=') THEN {count(tres(text, 'gres/gpu'))} "
        f"WHEN contains({text}, 'gres/gpu:') THEN CAST(coalesce({total}, 0) AS BIGINT) "
        f"WHEN {text} IS NOT NULL THEN 0 END"
    )


def gpu_model(text: str) -> str:
    """The types of the typed entries; several are joined by commas."""
    typed = f"regexp_extract_all({text}, '(?:^|,)gres/gpu:([^=,]+)=0*[1-9]', 1)"
    return (
        f"CASE WHEN contains({text}, 'gres/gpu:') "
        f"THEN nullif(array_to_string({typed}, ','), '') END"
    )


def node_names(text: str) -> str:
    """`gpu[01-03,07],login1` as a list; what cannot be expanded keeps its bracket."""
    names = f"regexp_extract_all({text}, {quote(NODE_LIST_ITEM)})"
    for _ in range(NODE_DIMENSIONS):
        names = _expanded(names)
    return (
        f"CASE WHEN NOT contains({text}, '[') THEN string_split({text}, ',') "
        f"WHEN regexp_full_match({text}, {quote(NODE_LIST)}) THEN {names} END"
    )


def task_ids(text: str) -> str:
    """A pending array `123_[1-3,7%2]` as the ids of its tasks."""
    ranges = f"string_split(regexp_extract({text}, '\\[([^%\\]]*)', 1), ',')"
    low = "CAST(regexp_extract(r, '^[0-9]+') AS BIGINT)"
    high = "CAST(regexp_extract(r, '-([0-9]+)', 1) AS BIGINT)"
    step = "coalesce(TRY_CAST(regexp_extract(r, ':([0-9]+)', 1) AS BIGINT), 1)"
    tasks = (
        f"flatten(list_transform({ranges}, lambda r: CASE WHEN contains(r, '-') "
        f"THEN generate_series({low}, {high}, {step}) ELSE [{low}] END))"
    )
    return (
        f"CASE WHEN regexp_full_match({text}, {quote(TASKS)}) THEN "
        f"list_transform({tasks}, lambda task: split_part({text}, '[', 1) || task) END"
    )


def _first(text: str, zone: str | None) -> str:
    later = _later(text, zone)
    if zone is None or not _days_changed(zone):
        return later
    return f"CASE WHEN {_is_repeated(text, zone)} THEN {later} - INTERVAL 1 HOUR ELSE {later} END"


def _later(text: str, zone: str | None) -> str:
    """DuckDB gives the later of the two moments of a repeated hour.

    A time that clocks skipped is as much later as they were put forward: 02:30 is 03:30.
    """
    return f"(TRY_CAST({text} AS TIMESTAMP) AT TIME ZONE {quote(zone or 'UTC')})"


def _is_repeated(text: str, zone: str) -> str:
    """Conversions are slow, so only the days on which it may be are looked at."""
    hour_before = f"({_later(text, zone)} - INTERVAL 1 HOUR)"
    return (
        f"CASE WHEN left({text}, 10) IN ({', '.join(map(quote, _days_changed(zone)))}) THEN "
        f"{hour_before} AT TIME ZONE {quote(zone)} = TRY_CAST({text} AS TIMESTAMP) ELSE false END"
    )


@cache
def _days_changed(zone: str, forward: bool = False) -> tuple[str, ...]:
    """The dates at which a zone's clocks are put back, or forward, or next to such a date."""
    days = [FIRST_DAY + timedelta(days=i) for i in range(NUM_DAYS)]
    offsets = [day.astimezone(ZoneInfo(zone)).utcoffset() or timedelta() for day in days]
    steps = zip(days, offsets, offsets[1:], strict=False)
    changed = [day for day, this, next in steps if (next > this if forward else next < this)]
    near = {day + timedelta(days=i) for day in changed for i in (-1, 0, 1)}
    return tuple(f"{day:%Y-%m-%d}" for day in sorted(near))


def _scaled(text: str, units: str) -> str:
    number = f"TRY_CAST(rtrim({text}, '{units}') AS DOUBLE)"
    cases = " ".join(f"WHEN '{unit}' THEN {1024**i}" for i, unit in enumerate(units, 1))
    return f"{number} * CASE right({text}, 1) {cases} ELSE 1 END"


def _expanded(names: str) -> str:
    """Each name with the first of its brackets written out."""
    before, inside = r"'^([^\[]*)\['", r"'\[([^\]]*)\]'"
    after = r"regexp_replace(name, '^[^\[]*\[[^\]]*\]', '')"
    numbers = (
        f"flatten(list_transform(string_split(regexp_extract(name, {inside}, 1), ','), "
        f"lambda r: {_numbers('r')}))"
    )
    written = f"regexp_extract(name, {before}, 1) || number || {after}"
    return (
        f"flatten(list_transform({names}, lambda name: CASE WHEN contains(name, '[') "
        f"THEN list_transform({numbers}, lambda number: {written}) ELSE [name] END))"
    )


def _numbers(text: str) -> str:
    """`08-11` as 08, 09, 10, 11: as wide as the first is written."""
    low, high = (f"TRY_CAST(split_part({text}, '-', {i}) AS BIGINT)" for i in (1, 2))
    width = f"len(split_part({text}, '-', 1))"
    longest = f"CAST(greatest({width}, len(CAST(i AS VARCHAR))) AS INTEGER)"
    padded = f"lpad(CAST(i AS VARCHAR), {longest}, '0')"
    return (
        f"CASE WHEN NOT contains({text}, '-') THEN [{text}] "
        f"WHEN {high} NOT BETWEEN {low} AND {low} + {MOST_NODES - 1} THEN ['[' || {text} || ']'] "
        f"ELSE list_transform(generate_series({low}, {high}), lambda i: {padded}) END"
    )
