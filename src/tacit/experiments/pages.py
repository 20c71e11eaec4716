"""What is made of finished rows: tables and plots beside them, the published figures, and the results page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from tacit.experiments import plots, tables
from tacit.experiments.results import Results, provenance, publish
from tacit.experiments.spec import Experiment, Row
from tacit.storage import write_bytes

TABLES = "tables.md"
PICTURES = Path("assets") / "results"  # beside the page

HEAD = """# Results

<!-- Written by `tacit results --page docs/results.md` from the stored cells; what is changed here by hand is lost. -->

Every figure below has a name and stands in `results/figures.json` with its spread, number of seeds, hardware, revision
and the command that makes it. Experiments write it, never a hand, and a test works out each entry again from the stored
cells. Spreads are standard deviations over seeds.
"""


def conclude(experiment: Experiment, results: Results, rows: list[Row], console: Console) -> None:
    """Show the tables, write them and the plots, and publish the figures, unless the run was a quick one."""
    for table in experiment.tables(rows):
        console.print(tables.rich(table))
    written = [write_tables(experiment, results.home(experiment), rows)]
    written += write_plots(experiment, results.home(experiment), rows)
    for path in written:
        console.print(f"written: {path}", highlight=False, markup=False, soft_wrap=True)
    if results.quick:
        console.print("A quick run: its numbers mean nothing and are not published.")
    else:
        publish(results, experiment, rows)


def write_tables(experiment: Experiment, folder: Path, rows: Sequence[Row]) -> Path:
    path = folder / TABLES
    write_bytes(path, "\n".join(tables.markdown(table) for table in experiment.tables(rows)).encode())
    return path


def write_plots(experiment: Experiment, folder: Path, rows: Sequence[Row]) -> list[Path]:
    return [path for plot in experiment.plots(rows) for path in plots.save(plot, folder)]


def write_page(experiments: Iterable[Experiment], results: Results, path: Path) -> None:
    """The results page, with its pictures beside it; `conclude` must have drawn them."""
    sections = []
    for experiment in experiments:
        rows = results.complete(experiment)
        if rows is None:
            sections.append(f"## {experiment.name}\n\n{_sentence(experiment.summary)} Not run to the end yet.\n")
            continue
        for plot in experiment.plots(rows):
            drawn = results.home(experiment) / f"{plot.name}.svg"
            write_bytes(path.parent / _picture(experiment, plot.name), drawn.read_bytes())
        sections.append(_section(experiment, rows))
    write_bytes(path, "\n".join([HEAD, *sections]).encode())


def _section(experiment: Experiment, rows: list[Row]) -> str:
    parts = [f"## {experiment.name}\n", f"{_sentence(experiment.summary)}\n"]
    parts += [f"{experiment.about}\n"] if experiment.about else []
    parts += [tables.markdown(table) for table in experiment.tables(rows)]
    for plot in experiment.plots(rows):
        parts.append(f"![{plot.title}]({_picture(experiment, plot.name).as_posix()})\n")
        parts += [f"{plot.note}\n"] if plot.note else []
    return "\n".join([*parts, _figures(experiment, rows)])


def _figures(experiment: Experiment, rows: list[Row]) -> str:
    """Every figure by name, and how they come about."""
    lines = ["| figure | value | spread | seeds | unit |", "| --- | ---: | ---: | ---: | --- |"]
    for name, figure in sorted(experiment.figures(rows).items()):
        numbers = f"{figure.value:.4g} | {figure.spread:.2g} | {figure.seeds}"
        lines.append(f"| `{experiment.name}.{name}` | {numbers} | {figure.unit} |")
    origin = provenance(experiment, rows)
    minutes = sum(row.seconds for row in rows) / 60
    repeat = f"To repeat: `{origin['command']}` ({len(rows)} cells, {minutes:,.1f} minutes in all)."
    return "\n".join([*lines, "", repeat, f"Hardware: {origin['hardware']}. Revision: {origin['revision']}.", ""])


def _picture(experiment: Experiment, plot: str) -> Path:
    return PICTURES / f"{experiment.name}-{plot}.svg"


def _sentence(summary: str) -> str:
    return f"{summary[:1].upper()}{summary[1:]}."
