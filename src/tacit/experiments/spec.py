"""What an experiment is: cells that can be run one by one, and what is made of their rows.

An experiment only describes: it draws no plot, writes no file and starts no process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import TypeAlias

from tacit.storage import Document

# A cell is its settings: nothing else may change what it measures.
Settings: TypeAlias = Document
Measured: TypeAlias = Document
Advance: TypeAlias = Callable[[int], None]


@dataclass(frozen=True)
class Place:
    """Where cells run: a device, and the folder of the data sets that have to be fetched (None: fetch them)."""

    device: str = "cpu"
    data: Path | None = None


@dataclass(frozen=True)
class Origin:
    """How a row came about: revision of the code, versions of what it stands on, hardware, and device as asked for."""

    revision: str
    versions: dict[str, str]
    hardware: str
    device: str = "cpu"


@dataclass(frozen=True)
class Row:
    """A cell that was run: what it measured, or the error that stopped it."""

    settings: Settings
    measured: Measured
    seconds: float
    origin: Origin
    error: str | None = None


@dataclass(frozen=True)
class Figure:
    """A published number: a mean, its standard deviation over seeds, how many there are, and its unit."""

    value: float
    spread: float
    seeds: int
    unit: str

    @classmethod
    def of(cls, values: Sequence[float], unit: str) -> Figure:
        """From one value per seed; a single seed has no spread."""
        return cls(fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values), unit)


@dataclass(frozen=True)
class Table:
    """A table of text, the first column naming its lines."""

    name: str
    title: str
    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Curve:
    """y over x with a band from low to high; `dashed` for what is only compared with."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    dashed: bool = False

    @classmethod
    def over_seeds(cls, label: str, x: Sequence[float], runs: Sequence[Sequence[float]], dashed: bool = False) -> Curve:
        """The mean of one run per seed, in a band of one standard deviation to either side."""
        points = [Figure.of(values, "") for values in zip(*runs, strict=True)]
        low, high = ([point.value + sign * point.spread for point in points] for sign in (-1, 1))
        return cls(label, x, [point.value for point in points], low, high, dashed)


@dataclass(frozen=True)
class Plot:
    """Curves on one pair of axes."""

    name: str
    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    logarithmic: bool = False
    note: str = field(default="", kw_only=True)


class Experiment(ABC):
    """A protocol: which cells there are, how one is run, and what their rows say."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name on the command line, and of its folder among the results."""

    @property
    def family(self) -> str:
        """What its figures' names begin with; experiments with one world may share it."""
        return self.name

    @property
    @abstractmethod
    def summary(self) -> str:
        """One line for the help text."""

    @property
    def about(self) -> str:
        """What a reader of the results page should know about the protocol, in Markdown; may be empty."""
        return ""

    @property
    def alone(self) -> bool:
        """Whether cells must not run side by side, because they measure time."""
        return False

    def prepare(self, place: Place) -> None:  # noqa: B027
        """Fetch what all cells need, once, before they run side by side."""

    @abstractmethod
    def cells(self, quick: bool) -> list[Settings]:
        """All cells of the protocol; `quick` is its shape in seconds, never published."""

    @abstractmethod
    def rounds(self, settings: Settings) -> int:
        """How many rounds a cell plays: the length of its progress bar."""

    @abstractmethod
    def run_cell(self, settings: Settings, place: Place, advance: Advance) -> Measured:
        """Run one cell; `advance` hears of rounds played, in steps that add up to `rounds`.

        Every cell measures under the same names, so that a row which lacks some can be told from a whole one.
        """

    @abstractmethod
    def figures(self, rows: Sequence[Row]) -> dict[str, Figure]:
        """The published numbers, from the rows of all cells; the experiment's name is put in front of theirs."""

    @abstractmethod
    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """What is shown in the terminal and on the results page."""

    @abstractmethod
    def plots(self, rows: Sequence[Row]) -> list[Plot]:
        """What is drawn."""
