"""Write docs/reference from the code: tables, settings, analyses, benchmarks, sources and commands.

`python docs/generate.py` writes the pages, `--check` fails where one is stale (a test runs it).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from hakaru import cli, schema, settings
from hakaru.analyses import DERIVED, Analysis, load_all
from hakaru.measure._base import Benchmark
from hakaru.measure._base import load_all as load_benchmarks
from hakaru.measure.preflight import CHECKS
from hakaru.measure.verdict import EXIT_CODES, MEANINGS
from hakaru.sources._base import load_all as load_sources

FOLDER = Path(__file__).parent / "reference"
NOTE = "<!-- made by docs/generate.py; change the code, then run `make docs` -->\n\n"


def tables() -> str:
    parts = ["# The tables\n", "Times are UTC, units live in the names, and unknown is null.\n"]
    for table in schema.TABLES.values():
        parts.append(f"## {table.name}\n\n{table.meaning} Key: `{', '.join(table.key)}`.\n")
        parts.append(_columns(table.columns))
        if table is schema.JOBS:
            parts.append(
                "Derived when they are asked for, in `--where` and in the web's filters:\n"
            )
            parts.append(_columns(DERIVED))
    return "\n".join(parts)


def _columns(columns: Sequence[schema.Column]) -> str:
    head = ["| column | type | unit | meaning |", "|---|---|---|---|"]
    rows = [f"| `{c.name}` | {c.type} | {c.unit} | {c.meaning} |" for c in columns]
    return "\n".join([*head, *rows, ""])


def settings_page() -> str:
    lines = [
        "# hakaru.toml",
        "",
        "The settings of a workspace, in its folder. All are optional. What a log's header says of a",
        "cluster (its zone, its size) fills what is not set here; what is set here wins.",
        "",
        "| key | default | meaning |",
        "|---|---|---|",
    ]
    lines += [f"| `{key}` | {default} | {meaning} |" for key, default, meaning in settings.KEYS]
    example = """
```toml
[engine]
memory = "8GB"

[clusters.aaic]
zone = "Asia/Tokyo"
gpus_per_node = 8
nodes = [{ since = 2017-07-14, count = 32 }, { since = 2018-04-01, count = 38 }]
working_hours = [9, 18]

[clusters.aaic.queues.normal]
max_walltime_h = 72
```
"""
    return "\n".join(lines) + "\n" + example


def analyses() -> str:
    parts = [
        "# The analyses\n",
        "Every one takes the filters `--cluster`, `--since`, `--until`, `--where`, `--min-run`,",
        "`--state`, and most `--by` and `--weight`. `num_pes` counts GPUs or processors, and `pe_hours` are",
        "the hours of those. It counts GPUs where the jobs that hold some ran for at least half of all run",
        "hours (the rest being jobs with processors and no GPU); where the hours are equal or unknown, the",
        "numbers of jobs decide. `--unit gpu|cpu`, or `unit` in hakaru.toml, chooses. Jobs without a size in",
        "that unit are left out where one is needed, and a line under the table says how to see them.\n",
    ]
    parts += [_analysis(analysis) for analysis in load_all()]
    return "\n".join(parts)


def _analysis(analysis: Analysis) -> str:
    lines = [f"## {analysis.id}\n", f"**{analysis.answers}**\n", analysis.description, ""]
    if analysis.reproduces:
        lines.append(f"- Reproduces: {analysis.reproduces}")
    rules = [rule.text for rule in analysis.rules]
    if analysis.min_run_s:
        rules.append(f"that ran for at least {analysis.min_run_s:g} s (`--min-run`)")
    if analysis.states:
        rules.append(f"that are {' or '.join(analysis.states)} (`--state`)")
    lines.append(f"- Only jobs {'; '.join(rules)}" if rules else "- All jobs")
    for param in analysis.params:
        lines.append(f"- `--param {param.name}={param.default}`: {param.help}")
    if not analysis.groups:
        lines.append("- Cannot be grouped with `--by`")
    return "\n".join(lines) + "\n"


def benchmarks() -> str:
    parts = [
        "# The benchmarks\n",
        "`hakaru bench run` measures them, `hakaru bench list ID` describes one. Verdicts:\n",
        "| verdict | exit code | meaning |\n|---|---|---|",
        *(f"| {each} | {EXIT_CODES[each]} | {MEANINGS[each]} |" for each in EXIT_CODES),
        "",
    ]
    parts += [_benchmark(each) for each in load_benchmarks()]
    parts.append("## Preflight\n\n`hakaru bench preflight` checks these on every node.\n")
    parts += ["| check | what it looks at | why |", "|---|---|---|"]
    parts += [f"| `{each.id}` | {each.title} | {each.why} |" for each in CHECKS]
    return "\n".join(parts) + "\n"


def _benchmark(each: Benchmark) -> str:
    lines = [f"## {each.id}\n", f"**{each.answers}**\n", each.description, ""]
    if each.reproduces:
        lines.append(f"- Reproduces: {each.reproduces}")
    for param in each.parameters:
        values = ", ".join(str(value) for value in param.values)
        quick = f"; quick: {', '.join(map(str, param.quick))}" if param.quick else ""
        quick += f"; on GPUs: {', '.join(map(str, param.on_gpu))}" if param.on_gpu else ""
        lines.append(f"- `--param {param.name}=…`: {param.help} Swept: {values}{quick}.")
    for quantity in each.quantities:
        lines.append(
            f"- Measures `{quantity.name}` ({quantity.unit}); {quantity.better} is better."
        )
    lines += [f"- Checked: {each.check}", f"- Judged: {each.judged}"]
    return "\n".join(lines) + "\n"


def sources() -> str:
    lines = ["# The sources\n", "`hakaru ingest` tells the format from the file.\n"]
    lines += ["| id | reads |", "|---|---|"]
    lines += [f"| `{source.id}` | {source.title} |" for source in load_sources()]
    return "\n".join(lines) + "\n"


def commands() -> str:
    context = click.Context(cli.main, info_name="hakaru")
    parts = ["# The commands\n"]
    for name in cli.main.list_commands(context):
        parts += _command(cli.main.get_command(context, name), name, context)
    return "\n".join(parts)


def _command(command: click.Command | None, name: str, parent: click.Context) -> list[str]:
    assert command is not None
    context = click.Context(command, info_name=name, parent=parent, max_content_width=100)
    parts = [f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"]
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            parts += _command(command.get_command(context, sub), sub, context)
    return parts


PAGES: dict[str, Callable[[], str]] = {
    "tables.md": tables,
    "settings.md": settings_page,
    "analyses.md": analyses,
    "benchmarks.md": benchmarks,
    "sources.md": sources,
    "commands.md": commands,
}


def main() -> None:
    check = "--check" in sys.argv[1:]
    stale = []
    for name, make in PAGES.items():
        path, text = FOLDER / name, NOTE + make().rstrip() + "\n"
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.write_text(text, encoding="utf-8")
    if check and stale:
        sys.exit(f"stale: {', '.join(stale)}; run `make docs`")


if __name__ == "__main__":
    main()
