"""How far a run is: bars in a terminal, and one plain line per finished cell anywhere."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from tacit.experiments.spec import Row, Settings


class Display:
    """Shows a run of cells on a console; without a terminal there are no bars."""

    def __init__(self, console: Console, name: str, cells: Sequence[Settings], done: int) -> None:
        self._varying = varying(cells)
        self._bars = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            console=console, disable=not console.is_terminal, transient=True,
        )  # fmt: skip
        self._cells = len(cells)
        self._done = done
        self._overall = self._bars.add_task(f"{name}, all cells", total=len(cells), completed=done)
        if done:
            console.print(f"{name}: {done} of {len(cells)} cells were run before", highlight=False)

    def __enter__(self) -> Display:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def start(self, settings: Settings, rounds: int) -> TaskID:
        """A bar for a cell that now runs."""
        return self._bars.add_task(escape(self.label(settings)), total=rounds)

    def advance(self, bar: TaskID, rounds: int) -> None:
        self._bars.advance(bar, rounds)

    def finish(self, bar: TaskID, row: Row) -> None:
        """A line for a cell that has ended, well or not."""
        self._bars.remove_task(bar)
        self._bars.advance(self._overall)
        self._done += 1
        end = f"{row.seconds:.1f} s" if row.error is None else f"[red]failed[/red]: {escape(row.error)}"
        line = f"{self._done}/{self._cells}  {escape(self.label(row.settings))}  {end}"
        self._bars.console.print(line, highlight=False, soft_wrap=True)

    def label(self, settings: Settings) -> str:
        return label(settings, self._varying)


def varying(cells: Sequence[Settings]) -> list[str]:
    """The settings in which cells differ; all of a single cell."""
    names = list(dict.fromkeys(name for settings in cells for name in settings))
    differing = [name for name in names if len({repr(settings.get(name)) for settings in cells}) > 1]
    return differing or names


def label(settings: Settings, names: Sequence[str]) -> str:
    """A cell in a few words."""
    return " ".join(f"{name}={settings[name]}" for name in names if name in settings)
