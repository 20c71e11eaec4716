"""Power laws: which exponent a curve has, and how sure of it one can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tacit.errors import ExperimentError


@dataclass(frozen=True)
class Point:
    """A mean and its standard error at x."""

    x: float
    mean: float
    error: float


@dataclass(frozen=True)
class Slope:
    """The exponent of a power law.

    `error` is its standard error, from those of the points; `bend` the one that their distances from the line suggest,
    which is larger where the curve is no power law.
    """

    value: float
    error: float
    bend: float


def slope(points: Sequence[Point]) -> Slope:
    """By least squares on logarithms, every point counting the same.

    >>> round(slope([Point(x, 3 * x**2, error=0.0) for x in (1.0, 10.0, 100.0)]).value, 6)
    2.0
    """
    if len(points) < 3:
        raise ExperimentError(f"a slope needs three points, there are {len(points)}")
    x, mean, error = torch.tensor([(point.x, point.mean, point.error) for point in points], dtype=torch.float64).T
    at, height = x.log() - x.log().mean(), mean.log() - mean.log().mean()
    weights = at / at.square().sum()
    value = weights @ height
    apart = (height - value * at).square().sum() / (len(points) - 2)
    return Slope(
        value=float(value),
        error=float((weights * error / mean).norm()),  # the error of log y is that of y / y
        bend=float((apart / at.square().sum()).sqrt()),
    )
