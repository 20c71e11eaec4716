"""`tacit demo`: see it learn, in about a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tacit.experiments.spec import Figure

SEEDS = 2
MOST_JOBS = 4

INTRODUCTION = (
    "tacit is shown handwritten digits and answers each with a guess. What comes back is another picture: of the next "
    "digit if the guess was right, of the previous one if it was wrong. Nobody tells tacit so, and nobody tells it "
    "whether a guess was right.\n"
)


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Where the plot and the table are written.")
    ] = Path("tacit-demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="A few seconds, to see that it runs: nothing much is learned.")
    ] = False,
) -> None:
    """Learn to name handwritten digits from reactions alone.

    Beside it run a learner that sees every reward and uniform choice. Takes about a minute on two cores.
    """
    import os
    import tempfile

    from rich.console import Console

    from tacit.cli.running import run_all
    from tacit.experiments import tables
    from tacit.experiments.digits import SEEDS as ALL
    from tacit.experiments.digits import Digits
    from tacit.experiments.pages import write_plots, write_tables
    from tacit.experiments.results import Results
    from tacit.experiments.spec import Place

    console, digits = Console(), Digits(ALL[:SEEDS])
    console.print(INTRODUCTION, highlight=False)
    with tempfile.TemporaryDirectory() as folder:
        jobs = min(MOST_JOBS, os.cpu_count() or 1)
        rows = run_all(digits, Results(Path(folder), quick), Place(), jobs, console, kept=False)
    console.print(*map(tables.rich, digits.tables(rows)))
    write_tables(digits, out, rows)
    drawn, *_ = write_plots(digits, out, rows)
    console.print(f"The reward over the rounds is drawn in {drawn}\n", highlight=False, markup=False, soft_wrap=True)
    console.print(sentence(digits.figures(rows)), highlight=False)


def sentence(figures: dict[str, Figure]) -> str:
    """What was learned, in measured numbers."""
    names = ("tacit", "sighted", "uniform")
    tacit, sighted, uniform = (f"{100 * figures[f'{name}.test'].value:.0f} %" for name in names)
    return (
        f"Without seeing a single reward, tacit learned to name {tacit} of digits it had never met; "
        f"a learner that sees every reward names {sighted}, uniform choice {uniform}."
    )
