"""Does health notice a broken world, and leave a healthy one alone? Each world is played, and its learner asked.

Everything else about the worlds is the same: small tables, 2,900 rounds, 2,000 of them uniform. The checks were made on
other seeds than those reported here.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import torch

from tacit.algorithms import Learner, Networks, OffPolicy, OnPolicy
from tacit.decoder import Decoder
from tacit.errors import DecoderWarning, InvalidInputError, UntrustworthyDecoderError
from tacit.experiments.scenes import BATCH, WORLDS, Scene, logged_actions, scene
from tacit.experiments.spec import (
    Advance,
    Experiment,
    Figure,
    Measured,
    Place,
    Plot,
    Row,
    Settings,
    Table,
)  # fmt: skip
from tacit.interactions import Interactions
from tacit.inverse import InverseTraining
from tacit.oracles import OracleTraining
from tacit.seeding import generator

SEEDS = range(20, 30)  # the checks were made on others, 0 to 9 among them
QUICK_WORLDS = "five_actions", "constant", "too_few"
INVERSE = InverseTraining(batch=64, contrast_steps=100, steps=600)
ORACLE = OracleTraining(replay=1, warm_up=150, batch=64, capacity=3_000)


@dataclass(frozen=True)
class Health(Experiment):
    """Every world with every seed; a world is flagged when the verdict is not ok."""

    @property
    def name(self) -> str:
        return "health"

    @property
    def summary(self) -> str:
        return "which broken worlds a learner notices by itself, and how often it doubts a healthy one"

    @property
    def about(self) -> str:
        broken = sum(world.broken for world in WORLDS.values())
        return (
            f"{len(WORLDS) - broken} healthy worlds and {broken} broken ones, {len(SEEDS)} seeds each. A world is "
            "*flagged* when `learner.health()` says watch or broken; a report on a healthy world is to do so once in a "
            "hundred times at most. The checks were made on other seeds."
        )

    def cells(self, quick: bool) -> list[Settings]:
        names, seeds = (QUICK_WORLDS, (0,)) if quick else (tuple(WORLDS), SEEDS)
        return [{"world": name, "seed": seed} for name in names for seed in seeds]

    def rounds(self, settings: Settings) -> int:
        made = scene(str(settings["world"]), int(str(settings["seed"])))
        return len(made.contexts)

    def run_cell(self, settings: Settings, place: Place, advance: Advance) -> Measured:
        seed = int(str(settings["seed"]))
        made = scene(str(settings["world"]), seed)
        learner = taught(made, seed, place.device, advance)
        report = learner.health()
        return {
            "verdict": report.verdict,
            "checks": {check.name: [check.severity, check.effect] for check in report.checks},
        }

    def figures(self, rows: Sequence[Row]) -> dict[str, Figure]:
        """Rates, their spread that over worlds' rates by seed."""
        figures = {}
        for name, broken in (("broken_flagged", True), ("healthy_flagged", False)):
            cells = [row for row in rows if WORLDS[_world(row)].broken == broken]
            seeds = sorted({str(row.settings["seed"]) for row in cells})
            rates = [_rate([row for row in cells if str(row.settings["seed"]) == seed]) for seed in seeds]
            figures[name] = Figure.of(rates, "share of worlds")
        return figures

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        lines = []
        for name, world in WORLDS.items():
            if cells := [row for row in rows if _world(row) == name]:
                severe = sum(row.measured["verdict"] == "broken" for row in cells)
                spoke = Counter(check for row in cells for check in _spoke(row))
                said = ", ".join(f"{check} {times}" for check, times in spoke.most_common())
                kind = "broken" if world.broken else "healthy"
                flagged = f"{round(_rate(cells) * len(cells))} of {len(cells)}"
                lines.append((name, kind, world.about, flagged, str(severe), said or "-"))
        header = ("world", "is", "what it is like", "flagged", "called broken", "checks that spoke, and how often")
        note = "Flagged: the verdict is watch or broken."
        return [Table("worlds", "Broken and healthy worlds", header, tuple(lines), note)]

    def plots(self, rows: Sequence[Row]) -> list[Plot]:
        return []


def taught(made: Scene, seed: int, device: str = "cpu", advance: Advance = lambda rounds: None) -> Learner:
    """A learner that has played the scene, or learned from its log; warnings and refusals are for health to repeat."""
    models = Networks(INVERSE, ORACLE, on=device)
    decoder = made.decoder or Decoder.from_assumption(alpha=1, theta=1, K=made.actions)
    source = generator(seed, "reactions")
    if made.log:
        learner = OffPolicy(made.actions, made.context, made.feedback, decoder=decoder, models=models, seed=seed)
        _fit(learner, made, source)
        advance(len(made.contexts))
        return learner
    playing = OnPolicy(
        made.actions, made.context, made.feedback, explore=made.explore, decoder=decoder, models=models, seed=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecoderWarning)
        for rows in torch.arange(len(made.contexts)).split(BATCH):
            decision = playing.choose(made.contexts[rows])
            playing.learn(decision, made.reactions(rows, decision.actions, source))
            advance(len(rows))
    return playing


def _fit(learner: OffPolicy, made: Scene, source: torch.Generator) -> None:
    n, K = made.rewards.shape
    actions = logged_actions(made, source)
    feedback = made.reactions(torch.arange(n), actions, source)
    log = Interactions.of(
        contexts=made.contexts, actions=actions, probabilities=torch.full((n, K), 1 / K), feedback=feedback
    )
    try:
        learner.fit(log)
    except (UntrustworthyDecoderError, InvalidInputError):
        return  # refused: health is to say why, too


def _world(row: Row) -> str:
    return str(row.settings["world"])


def _rate(rows: Sequence[Row]) -> float:
    return fmean(float(row.measured["verdict"] != "ok") for row in rows)


def _spoke(row: Row) -> list[str]:
    found = row.measured["checks"]
    assert isinstance(found, dict)
    return [name for name, said in found.items() if isinstance(said, list) and said[0] != "ok"]
