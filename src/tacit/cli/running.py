"""What the commands that run cells have in common: stopping, and saying what failed."""

from __future__ import annotations

import typer
from rich.console import Console

from tacit.experiments.results import Results
from tacit.experiments.runner import run
from tacit.experiments.spec import Experiment, Place, Row

INTERRUPTED = 130  # what shells report for Ctrl-C


def run_all(
    experiment: Experiment, results: Results, place: Place, jobs: int, console: Console, *, kept: bool = True
) -> list[Row]:
    """The rows of all cells; ends the command if any cell failed or Ctrl-C was pressed.

    `kept` says whether the rows outlive the command, so that it can go on from them.
    """
    cells = len(results.cells(experiment))
    try:
        rows = run(experiment, results, place, jobs, console)
    except KeyboardInterrupt:
        done = sum(row.error is None for row in results.rows(experiment))
        onwards = " are kept; the same command goes on from there" if kept else " were done"
        console.print(f"Stopped. {done} of {cells} cells{onwards}.", highlight=False)
        raise typer.Exit(INTERRUPTED) from None
    if failed := [row for row in rows if row.error is not None]:
        errors = Console(stderr=True, soft_wrap=True)
        errors.print(f"{len(failed)} of {cells} cells failed; the same command tries them again:", highlight=False)
        for row in failed:
            settings = " ".join(f"{name}={value}" for name, value in row.settings.items())
            errors.print(f"  {settings}: {row.error}", highlight=False, markup=False)
        raise typer.Exit(1)
    return rows
