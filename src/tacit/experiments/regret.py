"""What the rows of the theory's experiment say: regret along T and K, its exponents, and the bounds beside it.

A row's settings name an algorithm, a decoder and a world; what it measured is a mean regret with its standard error,
the regret of the uniform rounds alone, and the theorem's bound up to a constant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tacit.experiments.powers import Point, slope
from tacit.experiments.spec import Curve, Plot, Row, Table

ALGORITHMS = {"off_policy": "off-policy", "on_policy": "on-policy"}
DECODERS = {"lipschitz": "Lipschitz", "step": "step"}
AXES = {"rounds": "T", "actions": "K"}
BOTH_DECODERS = {"trap": "the trap", "random": "random worlds"}  # where each decoder is run
BANDS = "Bands: one standard error over seeds, mostly narrower than the line."


@dataclass(frozen=True)
class Series:
    """Regret along T or K, and the theorem's bound, up to a constant, beside it."""

    label: str
    axis: str
    regret: Sequence[Point]
    bound: Sequence[Point]


def series(rows: Sequence[Row]) -> dict[str, Series]:
    """Every line that has a slope, by the name of its figure."""
    found = {}
    for algorithm, label in ALGORITHMS.items():
        for axis, name in (("rounds", "slope"), ("actions", "slope_K")):
            worst = [[row] for row in hardest(rows, algorithm, axis)]
            found[f"{algorithm}.{name}"] = _series(f"{label}, close races", axis, worst)
        for world, where in BOTH_DECODERS.items():
            for decoder, by in DECODERS.items():
                alike = _along("rounds", _only(rows, algorithm=algorithm, world=world, decoder=decoder))
                found[f"{algorithm}.{world}.{decoder}.slope"] = _series(f"{label}, {where}, {by}", "rounds", alike)
    return found


def hardest(rows: Sequence[Row], algorithm: str, axis: str) -> list[Row]:
    """Along T or K, each time the close race in which the regret is greatest; the other of the two stays the same."""
    races = _only(rows, algorithm=algorithm, world="race")
    fewest = min(_value(row, "actions") for row in races)
    if axis == "rounds":
        races = _only(races, actions=fewest)
    else:
        races = _only(races, rounds=next(_value(row, "rounds") for row in races if _value(row, "actions") > fewest))
    return [_worst(alike) for alike in _along(axis, races)]


def step_over_ramp(lines: Mapping[str, Series], algorithm: str) -> Point:
    """How many times the ramp's regret the step decoder's is, in the trap at the largest T."""
    ramp, step = (lines[f"{algorithm}.trap.{decoder}.slope"].regret[-1] for decoder in DECODERS)
    ratio = step.mean / ramp.mean
    return Point(step.x, ratio, ratio * math.hypot(step.error / step.mean, ramp.error / ramp.mean))


def slope_table(rows: Sequence[Row]) -> Table:
    body = []
    for line in series(rows).values():
        fitted, bound = slope(line.regret), slope(line.bound)
        numbers = f"{fitted.value:.3f} ± {fitted.error:.3f}", f"{fitted.bend:.3f}", f"{bound.value:.3f}"
        body.append((line.label, AXES[line.axis], *numbers))
    header = ("regret of", "against", "slope", "bend", "slope of the bound")
    note = "The logarithm in the bounds lifts their slope in T above 2/3. The same loss in every round has slope 1."
    return Table("slopes", "Slopes of log regret", header, tuple(body), note)


def race_table(rows: Sequence[Row], axis: str) -> Table:
    body = []
    for algorithm, label in ALGORITHMS.items():
        for row in hardest(rows, algorithm, axis):
            regret, at = _value(row, "regret"), f"{AXES[axis]} = {_value(row, axis):,}"
            shares = f"{_value(row, 'uniform_regret') / regret:.0%}", f"{regret / _value(row, 'bound'):.4f}"
            body.append((f"{label}, {at}", f"{_value(row, 'gap'):g}", _regret(row), *shares))
    header = ("algorithm", "worst gap", "regret", "in uniform rounds", "regret / bound")
    return Table(f"races_{axis}", f"The worst close race for each {AXES[axis]}", header, tuple(body))


def decoder_table(rows: Sequence[Row], world: str) -> Table:
    """Both decoders side by side, T by T."""
    lines = series(rows)
    columns = {
        f"{label}, {by}": lines[f"{algorithm}.{world}.{decoder}.slope"].regret
        for algorithm, label in ALGORITHMS.items() for decoder, by in DECODERS.items()
    }  # fmt: skip
    body = [
        (f"{points[0].x:,.0f}", *(f"{point.mean:,.0f} ± {point.error:,.0f}" for point in points))
        for points in zip(*columns.values(), strict=True)
    ]
    return Table(world, f"Regret by decoder in {BOTH_DECODERS[world]}", ("T", *columns), tuple(body))


def scale_table(rows: Sequence[Row]) -> Table:
    """What becomes of the worst close race if N is another multiple of the theorem's, and gamma's share with it."""
    races = _only(rows, world="race", actions=min(_value(row, "actions") for row in _only(rows, world="race")))
    scales = sorted({_value(row, "scale") for row in races}, reverse=True)
    shared = sorted(set.intersection(*({_value(row, "rounds") for row in _only(races, scale=c)} for c in scales)))
    columns = {f"{label}, T = {T:,}": (name, T) for name, label in ALGORITHMS.items() for T in shared}
    body = []
    for scale in scales:
        cells = (_only(races, scale=scale, algorithm=name, rounds=T) for name, T in columns.values())
        body.append((f"1/{1 / scale:g}", *(_regret(_worst(rows)) for rows in cells)))
    title = "The worst close race, by the constant that the theorems leave open"
    return Table("scales", title, ("constant", *columns), tuple(body))


def race_plot(rows: Sequence[Row], axis: str) -> Plot:
    """Both algorithms, each with its bound times the least constant with which it holds."""
    names = {"rounds": "slope", "actions": "slope_K"}
    races = {label: series(rows)[f"{algorithm}.{names[axis]}"] for algorithm, label in ALGORITHMS.items()}
    measured = [_curve(label, line.regret) for label, line in races.items()]
    bounds = []
    for line in races.values():
        constant = max(regret.mean / bound.mean for regret, bound in zip(line.regret, line.bound, strict=True))
        y = [constant * point.mean for point in line.bound]
        bounds.append(Curve(f"{constant:.2g} times its bound", [point.x for point in line.bound], y, dashed=True))
    what = f"{axis} {AXES[axis]}"
    title = f"The worst close race: regret against {what}"
    return Plot(f"races_{axis}", title, what, "regret", (*measured, *bounds), logarithmic=True, note=BANDS)


def trap_plot(rows: Sequence[Row]) -> Plot:
    lines = series(rows)
    curves = [
        _curve(f"{label}, {by}", lines[f"{algorithm}.trap.{decoder}.slope"].regret)
        for algorithm, label in ALGORITHMS.items() for decoder, by in DECODERS.items()
    ]  # fmt: skip
    title = "The step decoder in its trap"
    return Plot("trap", title, "rounds T", "regret", tuple(curves), logarithmic=True, note=BANDS)


def _curve(label: str, points: Sequence[Point]) -> Curve:
    low, high = ([point.mean + sign * point.error for point in points] for sign in (-1, 1))
    return Curve(label, [point.x for point in points], [point.mean for point in points], low, high)


def _series(label: str, axis: str, alike: Sequence[Sequence[Row]]) -> Series:
    """From groups of rows along the axis; the rows of a group are averaged."""
    regret, bound = [], []
    for group in alike:
        x = float(_value(group[0], axis))
        error = math.hypot(*(_value(row, "error") for row in group)) / len(group)
        regret.append(Point(x, fmean(_value(row, "regret") for row in group), error))
        bound.append(Point(x, fmean(_value(row, "bound") for row in group), 0.0))
    return Series(label, axis, regret, bound)


def _worst(rows: Sequence[Row]) -> Row:
    return max(rows, key=lambda row: float(_value(row, "regret")))


def _regret(row: Row) -> str:
    return f"{_value(row, 'regret'):,.0f} ± {_value(row, 'error'):,.0f}"


def _along(axis: str, rows: Sequence[Row]) -> list[list[Row]]:
    """Rows in groups by their T or K, from the smallest to the largest."""
    return [_only(rows, **{axis: value}) for value in sorted({_value(row, axis) for row in rows})]


def _only(rows: Sequence[Row], **settings: object) -> list[Row]:
    return [row for row in rows if all(row.settings[name] == value for name, value in settings.items())]


def _value(row: Row, name: str) -> Any:
    """What a row's JSON holds under a name that is known, among its settings or its measurements."""
    return row.settings[name] if name in row.settings else row.measured[name]
