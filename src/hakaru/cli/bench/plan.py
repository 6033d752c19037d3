"""`hakaru bench plan`: which strategy trains a network on so many devices, before anything runs on them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from hakaru.cli._table import Column, Line
from hakaru.cli.bench._options import Size, format_option
from hakaru.errors import HakaruError

POWERS = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
COPIES = {"sgd": 0, "momentum": 1, "adam": 2}
EPILOG = """\b
Examples:
  hakaru bench plan resnet50 --devices 4 --memory 16GiB
  hakaru bench plan transformer@layers=12 --devices 8 --memory 500MB --link 10GB/s
  hakaru bench plan vgg16 --devices 4 --memory 8GiB --batch 128 -o plan.html
  hakaru bench plan mynet:make --devices 2 --memory 4GiB      # make() in ./mynet.py
"""


class Rate(click.ParamType[float]):
    """`10GB/s` or `200Mbit/s`, in bytes a second."""

    name = "rate"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, int | float):
            return float(value)
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKMGT])(B|bit)/s", str(value).strip())
        if found is None or not float(found[1]):
            self.fail(f"{value!r} is not a rate such as 10GB/s or 200Mbit/s", param, ctx)
        return float(found[1]) * POWERS[found[2]] / (8 if found[3] == "bit" else 1)


@click.command(epilog=EPILOG)
@click.argument("model")
@click.option(
    "--devices", required=True, type=click.IntRange(1, 4096), help="Number of devices, all alike."
)
@click.option("--memory", type=Size(), help="Memory of one device, e.g. 16GiB or 500MB; else that of "
              "the GPU, and on processors no limit.")  # fmt: skip
@click.option("--batch", type=click.IntRange(min=1), help="Samples of a step on all devices together; "
              "else the network's own number for each device.")  # fmt: skip
@click.option("--link", type=Rate(), help="Rate between two devices, e.g. 10GB/s; else 10GB/s is "
              "assumed for GPUs and 1GB/s for processors.")  # fmt: skip
@click.option("--optimiser", type=click.Choice(list(COPIES)), default="sgd", show_default=True,
              help="How much memory the optimiser keeps.")  # fmt: skip
@click.option("--device", default="cpu", show_default=True,
              help="Where the network is measured, cpu or cuda:0.")  # fmt: skip
@format_option
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the plan to a file: .json, or .html, .svg, .png or .pdf as a figure.")  # fmt: skip
def command(
    model: str, devices: int, memory: int | None, batch: int | None, link: float | None,
    optimiser: str, device: str, output_format: str, output: Path | None,
) -> None:  # fmt: skip
    """Predict how MODEL is best trained on several devices, and where a pipeline would cut it.

    MODEL is a network that Hakaru has (mlp, resnet50, inception-v3, vgg16, alexnet, transformer), or
    package.module:factory of your own, also from the current folder. Sizes follow an @, as in
    resnet50@image=64+classes=10. It is traced and measured on one device.
    """
    from hakaru.cli._output import without_nan
    from hakaru.measure.networks import load
    from hakaru.measure.partition.plan import plan

    _check_output(output)
    workload = load(model)
    if sys.stderr.isatty():
        click.echo(f"tracing and measuring {model} on {device}, within about a minute", err=True)
    found = plan(workload, devices, memory, batch, device, link, COPIES[optimiser])
    document = without_nan(found)
    if output is not None:
        _write(document, output)
    elif output_format == "json":
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        _print(document)


def _check_output(output: Path | None) -> None:
    """Before the network is measured: a plan may take a minute."""
    endings = (".json", ".html", ".svg", ".png", ".pdf")
    if output is not None and output.suffix.lower() not in endings:
        raise HakaruError(f"{output}: a plan's file ends in {', '.join(endings)}")


def _write(document: Mapping[str, Any], output: Path) -> None:
    from hakaru.cli._output import writing

    with writing(output):
        if output.suffix.lower() == ".json":
            text = json.dumps(document, indent=2, ensure_ascii=False)
            output.write_text(f"{text}\n", encoding="utf-8")
        else:
            from hakaru.figures import save
            from hakaru.figures.measure.partition import partition

            save(partition(document), output)
    click.echo(f"{output}: {document['sentence']}")


def _print(document: Mapping[str, Any]) -> None:
    from hakaru.cli._table import emit, page_width

    emit(_lines(document, page_width()))


def _lines(document: Mapping[str, Any], width: int) -> Iterator[Line]:
    from hakaru.cli._table import table_lines, wrapped

    for line in wrapped(document["sentence"], width):
        yield line, "bold"
    why = document["chosen"]["why"]
    for line in wrapped(f"{why[:1].upper()}{why[1:]}.", width):
        yield line, ""
    yield "", ""
    yield from table_lines(_candidates(document), 1, width)
    yield "", ""
    yield from table_lines(_stages(document), 1, width)


def _candidates(document: Mapping[str, Any]) -> list[Column]:
    found = document["candidates"]
    return [
        Column("strategy", [each["strategy"] for each in found], right=False),
        Column("fits", ["yes" if each["fits"] else "no" for each in found], right=False),
        Column("step", [_time(each["step_ms"]) for each in found]),
        Column("memory", [_size(each["memory_bytes"]) for each in found]),
        Column("micro-batches", [f"{each['microbatches']:,}" for each in found]),
        Column("why", [each["why"] for each in found], right=False, wraps=True),
    ]


def _stages(document: Mapping[str, Any]) -> list[Column]:
    from hakaru.registry import listed

    found = document["stages"]
    return [
        Column("stage", [f"{each['stage']}" for each in found]),
        Column("micro-batch", [_time(each["ms"]) for each in found]),
        Column("memory", [_size(each["memory_bytes"]) for each in found]),
        Column("parameters", [f"{each['parameters']:,}" for each in found]),
        Column("modules", [listed(each["modules"], 12) for each in found], right=False, wraps=True),
    ]


def _time(milliseconds: float | None) -> str:
    from hakaru.figures.measure.words import UNKNOWN, amount

    return UNKNOWN if milliseconds is None else amount(milliseconds, "ms")


def _size(num_bytes: int | None) -> str:
    from hakaru.figures.measure.words import UNKNOWN
    from hakaru.measure.preflight.check import size

    return UNKNOWN if num_bytes is None else size(num_bytes)
