"""What each part of tacit's own algorithm is worth: each is left out in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tacit.algorithms import Models, Networks, OnPolicy, TwoView
from tacit.decoder import Decoder
from tacit.encoders import Problem
from tacit.environments.digits import digits
from tacit.evaluation.progressive import play
from tacit.experiments.brief import networks
from tacit.experiments.spec import Advance, Experiment, Figure, Measured, Place, Plot, Row, Settings, Table
from tacit.storage import Json

Values: TypeAlias = Any  # what a row's JSON holds under a name that is known

ROUNDS, EXPLORE, PASSES = 6_000, 1_500, 5
BATCH = 50  # rounds between two changes of the policy
SEEDS = (60, 61, 62, 63)  # not looked at before
QUICK = 400


@dataclass(frozen=True)
class Without:
    """What is left out: settings of the inverse model and of the oracle, and whether to refine."""

    called: str
    inverse: dict[str, Json] = field(default_factory=dict)
    oracle: dict[str, Json] = field(default_factory=dict)
    refine: bool = True
    lemma_ramp: bool = False


VARIANTS = {
    "whole": Without("nothing: the whole"),
    "refinement": Without("refinement: h for good", refine=False),
    "contrast": Without("contrast of pairs", {"contrast": 0, "contrast_steps": 0}),
    "augmentation": Without("augmentation", {"augment": False}, {"augment": False}),
    "averages": Without("running means of weights", {"average": 0}, {"average": 0}),
    "wide_ramp": Without("the wide ramp: that of Lemma 4", lemma_ramp=True),
    "replay": Without("replay of earlier rounds", oracle={"replay": 0}),
}

ABOUT = f"""
The digits with image feedback, as in the experiment `digits`, for {ROUNDS:,} rounds, {EXPLORE:,} of them uniform: so
few that every part counts. Each line leaves out one part of `TwoView` as it comes, and keeps all others. Without
refinement it is Algorithm 2 with tacit's networks.
""".strip()


class Ablation(Experiment):
    """Every variant on every seed."""

    @property
    def name(self) -> str:
        return "ablation"

    @property
    def summary(self) -> str:
        return "what each part of the refined learner is worth: each is left out in turn"

    @property
    def about(self) -> str:
        return ABOUT

    def cells(self, quick: bool) -> list[Settings]:
        rounds, explore, seeds = (3 * QUICK, QUICK, SEEDS[:1]) if quick else (ROUNDS, EXPLORE, SEEDS)
        return [
            {"without": name, "rounds": rounds, "explore": explore, "seed": seed, **({"brief": True} if quick else {})}
            for name in VARIANTS for seed in seeds
        ]

    def rounds(self, settings: Settings) -> int:
        values: Values = settings
        return int(values["rounds"])

    def run_cell(self, settings: Settings, place: Place, advance: Advance) -> Measured:
        s: Values = settings
        environment = digits(s["seed"], place.device, PASSES)
        usual = networks(place, brief="brief" in s)
        learner = made(VARIANTS[s["without"]], environment.problem, s["explore"], usual, s["seed"])
        played = play(environment, learner, s["rounds"], BATCH, advance)
        return {
            "progressive": played.progressive, "test": played.test, "seconds": played.seconds,
            "inverse_loss": None if learner.fit_quality is None else learner.fit_quality.loss,
            "trusted": not learner.exploring,
        }  # fmt: skip

    def figures(self, rows: Sequence[Row]) -> dict[str, Figure]:
        return {
            f"{variant}.{name}": Figure.of(_measured(rows, variant, name), unit)
            for variant in VARIANTS
            for name, unit in (("progressive", "reward per round"), ("test", "accuracy"), ("seconds", "seconds"))
        }

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        figures = self.figures(rows)
        lines = []
        for name, variant in VARIANTS.items():
            progressive, test, seconds = (figures[f"{name}.{what}"] for what in ("progressive", "test", "seconds"))
            tests = _measured(rows, name, "test")
            lines.append((
                variant.called, f"{progressive.value:.3f} ({progressive.spread:.3f})",
                f"{100 * test.value:.1f} ({100 * test.spread:.1f})", f"{100 * min(tests):.1f}", f"{seconds.value:.0f}",
            ))  # fmt: skip
        header = ("left out", "progressive", "test, %", "worst seed, %", "seconds")
        note = f"Means and standard deviations over {figures['whole.test'].seeds} seeds; seconds on one core."
        return [Table("ablation", "What each part is worth", header, tuple(lines), note)]

    def plots(self, rows: Sequence[Row]) -> list[Plot]:
        return []


def made(variant: Without, problem: Problem, explore: int, usual: Networks, seed: int) -> OnPolicy | TwoView:
    """A learner without that part."""
    inverse: Values = variant.inverse
    oracle: Values = variant.oracle
    models: Models = replace(
        usual,
        inverse_training=replace(usual.inverse_training, **inverse),
        oracle_training=replace(usual.oracle_training, **oracle),
    )
    whole = TwoView(
        problem.actions, problem.context, problem.feedback, explore=explore, models=models, seed=seed,
        decoder=Decoder.from_assumption(1, 1, problem.actions) if variant.lemma_ramp else None,
    )  # fmt: skip
    if variant.refine:
        return whole
    return OnPolicy(
        problem.actions, problem.context, problem.feedback, explore=explore, models=models, seed=seed,
        schedule=whole.schedule,
    )  # fmt: skip


def _measured(rows: Sequence[Row], variant: str, name: str) -> list[Values]:
    return [row.measured[name] for row in rows if row.settings["without"] == variant]
