"""`tacit experiment NAME`: run an experiment, or go on with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.errors import InvalidInputError
from tacit.experiments.registry import CLASSES


def known(name: str) -> str:
    if name not in CLASSES:
        raise typer.BadParameter(f"there is no experiment {name!r}; there are {', '.join(CLASSES)}")
    return name


def present(device: str) -> str:
    from tacit.experiments.runner import check_device

    try:
        check_device(device)
    except InvalidInputError as error:
        raise typer.BadParameter(str(error)) from error
    return device


def experiment(
    name: Annotated[str, typer.Argument(metavar="NAME", callback=known, help=f"One of: {', '.join(CLASSES)}.")],
    results: Annotated[
        Path, typer.Option("--results", metavar="DIR", file_okay=False, help="Where cells and figures are kept.")
    ] = Path("results"),
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="DIR", exists=True, file_okay=False,
            help="A folder that holds the data set, or folders called mnist and fashion; without it, they are fetched "
            "once and kept.",
        ),
    ] = None,
    device: Annotated[
        str, typer.Option("--device", metavar="DEVICE", callback=present, help="cpu, cuda or cuda:NUMBER.")
    ] = "cpu",
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=1, help="Cells that run at a time, each in its own process.")
    ] = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="Its shape in seconds: kept in DIR/quick, never published.")
    ] = False,
) -> None:  # fmt: skip
    """Run an experiment, or go on with it where it stopped.

    Each cell is kept as a file as soon as it is done, so that stopping costs no more than the cells that were running.
    A cell that fails is kept with its error, stops no other, and is tried again by the same command. When every
    cell is done, tables and plots are written beside them and the figures into figures.json.
    """
    from rich.console import Console

    from tacit.cli.running import run_all
    from tacit.experiments.pages import conclude
    from tacit.experiments.registry import named
    from tacit.experiments.results import Results
    from tacit.experiments.spec import Place

    console, chosen, kept = Console(), named(name), Results(results, quick)
    rows = run_all(chosen, kept, Place(device, data), jobs, console)
    conclude(chosen, kept, rows, console)
