"""From the batches of a run to points of a curve that can be stored, and from stored points to a band over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from tacit.evaluation.progressive import Curve as Progress
from tacit.evaluation.progressive import Played
from tacit.experiments.spec import Curve, Measured
from tacit.storage import Json


def windowed(progress: Progress, window: int) -> Measured:
    """Mean hidden and decoded reward by windows of rounds; null where not every batch of it was decoded."""
    where = (progress.rounds() - 1) // window
    sizes = torch.tensor(progress.sizes, dtype=torch.float64)
    total = torch.zeros(int(where[-1]) + 1, dtype=torch.float64).index_add(0, where, sizes)

    def means(values: torch.Tensor) -> list[Json]:
        sums = torch.zeros_like(total).index_add(0, where, sizes * values)
        return [round(mean, 5) if math.isfinite(mean) else None for mean in (sums / total).tolist()]

    rounds: list[Json] = [int(end) for end in total.cumsum(0)]
    return {"rounds": rounds, "hidden": means(progress.hidden_means()), "decoded": means(progress.decoded_means())}


def whole(played: Played, window: int) -> Measured:
    """A run as a cell keeps it."""
    return {
        "progressive": played.progressive, "test": played.test, "seconds": played.seconds,
        "curve": windowed(played.curve, window),
    }  # fmt: skip


def after_exploration(progress: Progress) -> Measured:
    """Mean hidden and decoded reward of the rounds that were decoded; null if there are none."""
    decoded = progress.decoded_means()
    acted = decoded.isfinite()
    if not acted.any():
        return {"hidden": None, "decoded": None}
    weights = torch.tensor(progress.sizes, dtype=torch.float64)[acted]
    weights = weights / weights.sum()
    return {"hidden": float(weights @ progress.hidden_means()[acted]), "decoded": float(weights @ decoded[acted])}


def band(label: str, runs: Sequence[Any], name: str, dashed: bool = False) -> Curve:
    """`name` of what `windowed` gave for several seeds, over the windows in which every seed has a value."""
    points = [point for point in zip(runs[0]["rounds"], *(run[name] for run in runs), strict=True) if None not in point]
    rounds, *values = zip(*points, strict=True) if points else ((), *((),) * len(runs))
    return Curve.over_seeds(label, rounds, values, dashed)
