"""An experiment of a few instant cells, some of which go wrong when told to, and images that are quickly learned."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from tacit.environments.classification import Labelled
from tacit.experiments.spec import (
    Advance,
    Curve,
    Experiment,
    Figure,
    Measured,
    Place,
    Plot,
    Row,
    Settings,
    Table,
)  # fmt: skip
from tacit.seeding import generator

SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Fake(Experiment):
    """Measures its seed. `trouble` maps a seed to what befalls it while the file `cure` does not exist."""

    trouble: tuple[tuple[int, str], ...] = ()
    cure: Path = Path("/nowhere")
    only_one: bool = False
    called: str = "fake"
    kin: str | None = None

    @property
    def name(self) -> str:
        return self.called

    @property
    def family(self) -> str:
        return self.kin or self.called

    @property
    def summary(self) -> str:
        return "seeds, measured"

    @property
    def alone(self) -> bool:
        return self.only_one

    def cells(self, quick: bool) -> list[Settings]:
        return [{"size": 10, "seed": seed} for seed in (SEEDS[:1] if quick else SEEDS)]

    def rounds(self, settings: Settings) -> int:
        return 4

    def run_cell(self, settings: Settings, place: Place, advance: Advance) -> Measured:
        seed = int(str(settings["seed"]))
        advance(2)
        befalls = dict(self.trouble).get(seed) if not self.cure.exists() else None
        if befalls == "raises":
            raise ValueError(f"seed {seed} is [unlucky]")
        if befalls == "interrupted":
            raise KeyboardInterrupt
        if befalls == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if befalls == "disk full":
            fill_disk()
        while befalls == "waits" and not self.cure.exists():
            time.sleep(0.01)
        advance(2)
        return {"value": float("nan") if befalls == "nan" else float(seed), "process": os.getpid()}

    def figures(self, rows: Sequence[Row]) -> dict[str, Figure]:
        return {"value": Figure.of(values(rows), "seeds")}

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        lines = tuple((f"seed {seed}", f"{value:.1f}") for seed, value in enumerate(values(rows)))
        return [Table("values", "Values by seed", ("seed", "value"), lines, note="Higher seeds give [more].")]

    def plots(self, rows: Sequence[Row]) -> list[Plot]:
        found = values(rows)
        return [Plot("line", "Values", "seed", "value", (Curve("value", range(len(found)), found),))]


def fill_disk() -> None:
    """Neither the cell's row nor the one that says so can be written; then there is room again."""
    really, refused = os.fsync, []

    def fsync(handle: int) -> None:
        refused.append(handle)
        if len(refused) == 2:
            os.fsync = really
        raise OSError(errno.ENOSPC, "No space left on device")

    os.fsync = fsync


def values(rows: Sequence[Row]) -> list[float]:
    return [float(str(row.measured["value"])) for row in rows]


def striped(count: int = 1_500) -> Labelled:
    """Images of ten classes in the shape of MNIST that a glance tells apart: a bright stripe, higher or lower."""
    labels = torch.arange(count) % 10
    images = torch.randint(60, (count, 28, 28), dtype=torch.uint8, generator=generator(0, "stripes"))
    for label in range(10):
        images[labels == label, 2 * label + 3 : 2 * label + 6] += 180
    return Labelled(images, labels, 10)
