"""Regret against rounds and actions on finite worlds, where the theorems apply: is it of the order T^(2/3) K^(2/3)?

The theorems bound the regret in the worst world. So the exponents are measured on close races, in which the gap
between the two best actions is the worst for that T: hard to see in the rounds of exploration, and worth seeing. Beside
them stand worlds drawn at random, and the trap in which the step decoder fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias

from tacit.algorithms import Horizon, theory
from tacit.environments.finite import (
    FiniteInstance,
    FunctionClasses,
    close_race,
    function_classes,
    random_instance,
    step_trap,
    widest_gap,
)  # fmt: skip
from tacit.errors import ExperimentError
from tacit.experiments.powers import slope
from tacit.experiments.regret import (
    ALGORITHMS,
    AXES,
    BOTH_DECODERS,
    DECODERS,
    decoder_table,
    race_plot,
    race_table,
    scale_table,
    series,
    slope_table,
    step_over_ramp,
    trap_plot,
)  # fmt: skip
from tacit.experiments.simulation import Task, off_policy, on_policy
from tacit.experiments.spec import Advance, Experiment, Figure, Measured, Place, Plot, Row, Settings, Table
from tacit.oracles.vovk import regret_bound
from tacit.seeding import generator

World: TypeAlias = tuple[FiniteInstance, FunctionClasses]

# The constant that the theorems leave open, the same for every T, K, decoder and world: of SCALES, the one that is
# nowhere far from the best in the worst race.
SCALE, SCALES = 1 / 64, (1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256)

ROUNDS = (1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000)
ACTIONS = (8, 16, 32, 64)
ROUNDS_FOR_ACTIONS, ROUNDS_FOR_SCALES = 100_000, (1_000, 10_000, 100_000)
# The worst gap falls as (K / N)^(1/2), from about WORST at T = 1,000, K = 8 and our scale; three of these are near it.
GAPS, WORST = (0.64, 0.32, 0.16, 0.08, 0.04, 0.02), 0.41
SEEDS, QUICK_SEEDS, PLAYS = 1_024, 64, 2
TRAP_ACTIONS, RANDOM_WORLDS = 4, 2

SPREAD = "spread: its standard error"

ABOUT = f"""
Contexts, actions and feedback are indices and all candidates are listed, so every part of both algorithms is exact: the
posterior is the empirical risk minimiser, the oracle is Vovk's, N and gamma are the theorems'. These leave a constant
open, which multiplies N and divides gamma; it is 1/{1 / SCALE:g} for every T, K, decoder and world, and another only in
the table that says why. Regret is summed from expected rewards, uniform rounds included, and is a mean over {SEEDS:,}
seeds. Where several candidates are equally good, a coin decides.

Any one world stops being hard once there are rounds enough, and then only exploration costs anything. The theorems
speak of the worst world, so slopes are measured on close races: a second action is worse than the best by a gap only,
and for each T and K the gap with the greatest regret counts. The trap is made by hand: its class holds candidates that
hardly differ from the truth, but put the best action's posterior just below theta/alpha, where the step decoder jumps.

Errors (±) are standard errors over seeds, those of slopes too. `bend` is the error of a slope that the distances of the
points from a straight line suggest.
""".strip()


@dataclass(frozen=True)
class Cell:
    """One setting: an algorithm with a decoder in a world, for `rounds` rounds and `actions` actions.

    world: race (with a gap), random (with a seed of its own) or trap.
    """

    algorithm: str
    decoder: str
    world: str
    rounds: int
    actions: int
    gap: float = 0.0
    world_seed: int = 0
    scale: float = SCALE
    seeds: int = SEEDS

    @classmethod
    def of(cls, settings: Settings) -> Cell:
        try:
            cell = cls(**settings)  # type: ignore[arg-type]
        except TypeError as error:
            raise ExperimentError(f"these are not the settings of a cell of theory: {error}") from error
        for name, known in (("algorithm", ALGORITHMS), ("decoder", DECODERS), ("world", WORLDS)):
            if (found := getattr(cell, name)) not in known:
                raise ExperimentError(f"{name}: expected one of {', '.join(known)}, got {found!r}")
        return cell


class Theory(Experiment):
    """T from 10^3 to 10^6, K from 8 to 64, both algorithms, both decoders."""

    @property
    def name(self) -> str:
        return "theory"

    @property
    def summary(self) -> str:
        return "regret against T and K on finite worlds beside the theorems' bounds, and where the step decoder fails"

    @property
    def about(self) -> str:
        return ABOUT

    def cells(self, quick: bool) -> list[Settings]:
        rounds, actions, seeds = (ROUNDS[:3], ACTIONS[:3], QUICK_SEEDS) if quick else (ROUNDS, ACTIONS, SEEDS)
        sizes = [(T, ACTIONS[0], SCALE) for T in rounds]
        sizes += [(min(rounds[-1], ROUNDS_FOR_ACTIONS), K, SCALE) for K in actions[1:]]
        sizes += [(T, ACTIONS[0], c) for c in SCALES if c != SCALE for T in ROUNDS_FOR_SCALES if T <= rounds[-1]]
        worlds = [("trap", TRAP_ACTIONS, 0), *(("random", ACTIONS[0], number) for number in range(RANDOM_WORLDS))]
        races = [
            Cell(algorithm, "lipschitz", "race", T, K, gap, scale=scale, seeds=seeds)
            for algorithm in ALGORITHMS for T, K, scale in sizes for gap in hard_gaps(T, K, scale)
        ]  # fmt: skip
        others = [
            Cell(algorithm, decoder, world, T, K, world_seed=number, seeds=seeds)
            for algorithm in ALGORITHMS for world, K, number in worlds for decoder in DECODERS for T in rounds
        ]  # fmt: skip
        return [asdict(cell) for cell in races + others]

    def rounds(self, settings: Settings) -> int:
        return Cell.of(settings).rounds

    def run_cell(self, settings: Settings, place: Place, advance: Advance) -> Measured:
        cell = Cell.of(settings)
        task = make_task(cell)
        source = generator(0, " ".join(["theory", *map(str, asdict(cell).values())]))
        if cell.algorithm == "off_policy":
            outcome = off_policy(task, cell.seeds, source, advance)
        else:
            outcome = on_policy(task, cell.seeds, PLAYS, source, advance)
        return {**asdict(outcome), "bound": bound(cell.algorithm, task)}

    def figures(self, rows: Sequence[Row]) -> dict[str, Figure]:
        seeds, lines = Cell.of(rows[0].settings).seeds, series(_ours(rows))
        found = {}
        for name, line in lines.items():
            fitted = slope(line.regret)
            found[name] = Figure(fitted.value, fitted.error, seeds, f"exponent of {AXES[line.axis]}, {SPREAD}")
        for algorithm in ALGORITHMS:
            ratio = step_over_ramp(lines, algorithm)
            name = f"{algorithm}.trap.step_over_lipschitz"
            found[name] = Figure(ratio.mean, ratio.error, seeds, f"times, at T = {ratio.x:,.0f}, {SPREAD}")
        return found

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        ours = _ours(rows)
        races = [race_table(ours, axis) for axis in AXES]
        decoders = [decoder_table(ours, world) for world in BOTH_DECODERS]
        return [slope_table(ours), *races, *decoders, scale_table(rows)]

    def plots(self, rows: Sequence[Row]) -> list[Plot]:
        ours = _ours(rows)
        return [*(race_plot(ours, axis) for axis in AXES), trap_plot(ours)]


def hard_gaps(T: int, K: int = ACTIONS[0], scale: float = SCALE) -> list[float]:
    """The three gaps around the worst, or as many as a race can have."""
    worst = WORST * (T / 1_000) ** (-1 / 3) * (K / ACTIONS[0]) ** (1 / 6) * (scale / SCALE) ** (-1 / 2)
    return [gap for gap in GAPS if abs(math.log2(gap / worst)) < 1.5 and gap < widest_gap(K)]


def make_task(cell: Cell) -> Task:
    instance, classes = WORLDS[cell.world](cell)
    decoder = instance.decoder if cell.decoder == "lipschitz" else instance.decoder.step()
    return Task(instance, classes, decoder, Horizon(cell.rounds, classes.size, len(classes.f), cell.scale))


def bound(algorithm: str, task: Task) -> float:
    """What the theorem allows, up to a constant: by the theorem's own N and gamma, without ours."""
    size = task.horizon.rounds, *task.size, task.classes.size
    if algorithm == "off_policy":
        return theory.off_policy_bound(*size)
    regression_regret = regret_bound(len(task.classes.f))
    gamma = theory.on_policy_gamma(*size, regression_regret)
    return theory.on_policy_bound(*size, regression_regret, gamma, theory.on_policy_rounds(*size, gamma))


def _ours(rows: Sequence[Row]) -> list[Row]:
    """The rows with the scale that was chosen."""
    return [row for row in rows if row.settings["scale"] == SCALE]


def _race(cell: Cell) -> World:
    return close_race(cell.actions, cell.gap)


def _random(cell: Cell) -> World:
    source = generator(cell.world_seed, "theory world")
    instance = random_instance(source, contexts=8, actions=cell.actions, feedbacks=4, theta=0.6, alpha=1.0)
    return instance, function_classes(instance, source)


def _trap(cell: Cell) -> World:
    return step_trap(cell.actions)


WORLDS: Mapping[str, Callable[[Cell], World]] = {"race": _race, "random": _random, "trap": _trap}
