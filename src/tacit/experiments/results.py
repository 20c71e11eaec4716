"""Results as files: a row per cell, and the figures that follow from the rows of all experiments."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from tacit.errors import CorruptFileError, ExperimentError
from tacit.experiments.spec import Experiment, Origin, Row, Settings
from tacit.storage import Document, Json, read_json, write_bytes, write_json

FIGURES = "figures.json"


def key(experiment: str, settings: Settings) -> str:
    """The name of a cell: the same for the same settings, whatever their order."""
    text = json.dumps([experiment, settings], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Results:
    """A folder of results; those of quick runs lie in a folder of their own and are never published."""

    folder: Path
    quick: bool = False

    def home(self, experiment: Experiment) -> Path:
        """Where an experiment's own files lie."""
        return self.folder / "quick" / experiment.name if self.quick else self.folder / experiment.name

    def cells(self, experiment: Experiment) -> list[Settings]:
        """The protocol; no cell twice."""
        cells = experiment.cells(self.quick)
        if len({key(experiment.name, settings) for settings in cells}) < len(cells):
            raise ExperimentError(f"{experiment.name}: its protocol has the same cell twice")
        return cells

    def write(self, experiment: Experiment, row: Row) -> None:
        write_json(self._path(experiment, row.settings), _document(row))

    def check_writable(self, experiment: Experiment) -> None:
        """Refuse to start what could not be kept: SaveError."""
        probe = self.home(experiment) / "cells" / "probe"
        write_bytes(probe, b"")
        probe.unlink(missing_ok=True)

    def read(self, experiment: Experiment, settings: Settings) -> Row | None:
        """The row of a cell, if it was ever run."""
        path = self._path(experiment, settings)
        return read_row(path, settings) if path.exists() else None

    def rows(self, experiment: Experiment) -> list[Row]:
        """The stored rows of the protocol, in its order, failed ones among them."""
        rows = [row for settings in self.cells(experiment) if (row := self.read(experiment, settings)) is not None]
        self._check_alike(experiment, [row for row in rows if row.error is None])
        return rows

    def with_failed(self, experiment: Experiment, failed: list[Row]) -> list[Row]:
        """The rows of the protocol, with these in place of stored ones: they failed, and may not have been stored."""
        found = {key(experiment.name, row.settings): row for row in [*self.rows(experiment), *failed]}
        names = [key(experiment.name, settings) for settings in self.cells(experiment)]
        return [found[name] for name in names if name in found]

    def complete(self, experiment: Experiment) -> list[Row] | None:
        """The rows of the protocol if every cell has run without error: nothing is concluded from a part."""
        rows = self.rows(experiment)
        done = len(rows) == len(self.cells(experiment)) and all(row.error is None for row in rows)
        return rows if done else None

    def _check_alike(self, experiment: Experiment, rows: list[Row]) -> None:
        """Refuse rows that lack what others have: no table can be made of them."""
        names = [measurements(row.measured) for row in rows]
        every = Counter(name for found in names for name in found)
        most = {name for name, count in every.items() if 2 * count > len(rows)}
        for expected in (most, set(every)):  # what only a few have is not their fault, if others lack more
            for row, found in zip(rows, names, strict=True):
                if lacking := ", ".join(sorted(expected - found)):
                    path, advice = self._path(experiment, row.settings), "delete it to run the cell again"
                    raise CorruptFileError(f"{path} lacks {lacking}, which other cells measured; {advice}")

    def _path(self, experiment: Experiment, settings: Settings) -> Path:
        return self.home(experiment) / "cells" / f"{key(experiment.name, settings)}.json"


def read_row(path: Path, settings: Settings) -> Row:
    """A row file, checked: complete, and of these settings."""
    document = read_json(path)
    try:
        if not isinstance(document, dict):
            raise TypeError("not a JSON object")
        row = Row(**{**document, "origin": Origin(**document["origin"])})  # type: ignore[arg-type]
        if key("", row.settings) != key("", settings):
            raise ValueError("it does not hold the settings that its name stands for")
        if not isinstance(row.measured, dict) or (row.error is None and not row.measured):
            raise ValueError("it holds neither measurements nor an error")
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptFileError(f"{path} is not the row of a cell ({error}); delete it to run the cell again") from error
    return row


def measurements(value: Json, name: str = "") -> set[str]:
    """The names of all that a cell measured, 'outer.inner'; of a list, what all its entries have."""
    if isinstance(value, dict):
        named = {f"{name}.{inner}" if name else inner: entry for inner, entry in value.items()}
        return set(named).union(*(measurements(entry, inner) for inner, entry in named.items()))
    if isinstance(value, list) and value:
        return set.intersection(*(measurements(entry, name) for entry in value))
    return set()


def figures(experiment: Experiment, rows: list[Row]) -> Document:
    """The published form of an experiment's figures, by full name."""
    found = sorted(experiment.figures(rows).items())
    return {f"{experiment.family}.{name}": {**asdict(figure), **provenance(experiment, rows)} for name, figure in found}


def provenance(experiment: Experiment, rows: list[Row]) -> dict[str, str]:
    """How rows came about; one text where they agree, as they mostly do, else every one of them."""
    every = {
        "hardware": {row.origin.hardware for row in rows},
        "command": {_command(experiment, row.origin) for row in rows},
        "revision": {row.origin.revision for row in rows},
    }
    return {name: "; ".join(sorted(values)) for name, values in every.items()}


def recomputed(results: Results, experiments: Iterable[Experiment]) -> Document:
    """All figures, from the stored cells of the experiments that are complete."""
    return {
        name: entry
        for experiment in experiments if (rows := results.complete(experiment)) is not None
        for name, entry in figures(experiment, rows).items()
    }  # fmt: skip


def published(results: Results) -> Document:
    """What figures.json holds."""
    path = results.folder / FIGURES
    if not path.exists():
        return {}
    document = read_json(path)
    if not isinstance(document, dict) or not all(isinstance(entry, dict) for entry in document.values()):
        raise CorruptFileError(f"{path} is not a table of figures by name; delete it to have it written again")
    return document


def publish(results: Results, experiment: Experiment, rows: list[Row]) -> None:
    """Put an experiment's figures in the place of its earlier ones; those of others stay."""
    if results.quick:
        raise ExperimentError(f"{experiment.name}: a quick run is never published")
    others = {name: entry for name, entry in published(results).items() if not made_by(experiment, entry)}
    merged = others | figures(experiment, rows)
    write_json(results.folder / FIGURES, {name: merged[name] for name in sorted(merged)})


def made_by(experiment: Experiment, entry: Json) -> bool:
    """Whether a published figure is this experiment's: others of its family have figures of their own."""
    command = entry.get("command") if isinstance(entry, dict) else None
    return f"{command} ".startswith(f"tacit experiment {experiment.name} ")


def _document(row: Row) -> Json:
    return {field.name: getattr(row, field.name) for field in fields(row)} | {"origin": asdict(row.origin)}


def _command(experiment: Experiment, origin: Origin) -> str:
    return f"tacit experiment {experiment.name}" + (f" --device {origin.device}" if origin.device != "cpu" else "")

