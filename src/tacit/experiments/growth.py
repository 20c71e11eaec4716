"""Does a round cost more, or does memory grow, the longer the refined learner plays?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, TypeAlias

from tacit.algorithms import FiniteClasses, Models, Networks, TwoView
from tacit.decoder import Decoder
from tacit.environments import Environment
from tacit.environments.finite import FiniteEnvironment, function_classes, random_instance
from tacit.environments.tables import load, tabular
from tacit.evaluation.progressive import play
from tacit.experiments.spec import Advance, Curve, Experiment, Figure, Measured, Place, Plot, Row, Settings, Table
from tacit.seeding import generator

Values: TypeAlias = Any  # what a row's JSON holds under a name that is known

WORLDS = {"finite": "finite classes", "table": "penbased, networks"}
ROUNDS = (10_000, 100_000, 1_000_000)
EXPLORE = 2_000
BATCH = 500  # rounds between two changes of the policy
SEED = 50
QUICK = (3_000, 6_000)

ABOUT = f"""
`TwoView` with {EXPLORE:,} uniform rounds plays for {ROUNDS[0]:,}, {ROUNDS[1]:,} and {ROUNDS[2]:,} rounds, in batches of
{BATCH}. Seconds are those of the processor, refinements included; what is held is all that a saved learner holds. The
rounds that are kept to be decoded again are limited, and refinements come after twice as many rounds each time, so
that neither can grow with the rounds for long.
""".strip()


class Growth(Experiment):
    """Either world at every length."""

    @property
    def name(self) -> str:
        return "growth"

    @property
    def summary(self) -> str:
        return "cost of a round and memory of the refined learner, from 10^4 to 10^6 rounds"

    @property
    def about(self) -> str:
        return ABOUT

    @property
    def alone(self) -> bool:
        return True

    def cells(self, quick: bool) -> list[Settings]:
        return [
            {"world": world, "rounds": rounds, "seed": SEED}
            for world in WORLDS for rounds in (QUICK if quick else ROUNDS)
        ]  # fmt: skip

    def rounds(self, settings: Settings) -> int:
        values: Values = settings
        return int(values["rounds"])

    def run_cell(self, settings: Settings, place: Place, advance: Advance) -> Measured:
        s: Values = settings
        environment, models, decoder = world(s["world"], s["rounds"], s["seed"], place)
        problem = environment.problem
        learner = TwoView(
            problem.actions, problem.context, problem.feedback, explore=EXPLORE, models=models, decoder=decoder,
            seed=s["seed"],
        )  # fmt: skip
        started = time.process_time()
        played = play(environment, learner, s["rounds"], BATCH, advance)
        seconds = time.process_time() - started
        held = sum(tensor.nbytes for part in learner.parts().values() for tensor in part.values())
        return {
            "seconds": seconds, "held": held, "test": played.test, "refinement": str(learner.refinement),
        }  # fmt: skip

    def figures(self, rows: Sequence[Row]) -> dict[str, Figure]:
        found = {}
        for name in WORLDS:
            lengths, costs = _costs(rows, name)
            ratio = costs[-1] / costs[0]
            found[f"{name}.cost_of_last_against_first"] = Figure(ratio, 0.0, 1, f"ratio, {lengths[-1]:,} rounds")
            found[f"{name}.microseconds_per_round"] = Figure(costs[-1], 0.0, 1, f"microseconds, {lengths[-1]:,} rounds")
        return found

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        lines = []
        for name, called in WORLDS.items():
            for row, rounds, cost in zip(_rows(rows, name), *_costs(rows, name), strict=True):
                measured: Values = row.measured
                lines.append((called, f"{rounds:,}", f"{cost:.0f}", f"{measured['held'] / 2**20:.1f}"))
        header = ("world", "rounds", "microseconds a round", "held, MiB")
        return [Table("growth", "What a round costs", header, tuple(lines), "One thread.")]

    def plots(self, rows: Sequence[Row]) -> list[Plot]:
        curves = tuple(Curve(called, *_costs(rows, name)) for name, called in WORLDS.items())
        return [Plot("cost", "What a round costs", "rounds played", "microseconds a round", curves, logarithmic=True)]


def world(name: str, rounds: int, seed: int, place: Place) -> tuple[Environment, Models, Decoder | None]:
    """Where it plays, with what models and decoder."""
    if name == "finite":
        instance = random_instance(generator(seed, "world"), 8, 8, 4, theta=0.8, alpha=1.0)
        classes = function_classes(instance, generator(seed, "classes"))
        return FiniteEnvironment(instance, seed), FiniteClasses(classes.f, classes.phi), instance.decoder
    passes = -(-rounds * 5 // (4 * len(load("penbased")))) + 1
    return tabular("penbased", seed, place.device, passes), Networks(on=place.device), None


def _rows(rows: Sequence[Row], name: str) -> list[Row]:
    return [row for row in rows if row.settings["world"] == name]


def _costs(rows: Sequence[Row], name: str) -> tuple[list[int], list[float]]:
    """Lengths, and microseconds a round."""
    runs: list[Values] = _rows(rows, name)
    lengths = [run.settings["rounds"] for run in runs]
    return lengths, [1e6 * run.measured["seconds"] / run.settings["rounds"] for run in runs]
