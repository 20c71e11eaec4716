"""`tacit results`: make everything again that follows from the stored cells."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def results(
    folder: Annotated[
        Path,
        typer.Option("--results", metavar="DIR", exists=True, file_okay=False, help="Where cells and figures lie."),
    ] = Path("results"),
    page: Annotated[
        Path | None,
        typer.Option("--page", metavar="FILE", dir_okay=False, help="Write the results page too, as Markdown."),
    ] = None,
) -> None:
    """Make tables, plots and figures again from the stored cells, without running anything.

    An experiment with missing or failed cells is left as it is: nothing is concluded from a part.
    """
    from rich.console import Console

    from tacit.experiments.pages import conclude, write_page
    from tacit.experiments.registry import every
    from tacit.experiments.results import Results

    console, kept, experiments = Console(), Results(folder), every()
    for experiment in experiments:
        rows = kept.complete(experiment)
        if rows is None:
            done = sum(row.error is None for row in kept.rows(experiment))
            cells = len(kept.cells(experiment))
            console.print(f"{experiment.name}: left as it is, {done} of {cells} cells are done", highlight=False)
        else:
            conclude(experiment, kept, rows, console)
    if page is not None:
        write_page(experiments, kept, page)
        console.print(f"written: {page}", highlight=False, markup=False, soft_wrap=True)
