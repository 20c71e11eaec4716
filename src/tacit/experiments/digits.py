"""The small experiment: 1,797 digits, learned from image feedback alone, beside a learner that sees every reward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tacit.algorithms import Networks, TwoView
from tacit.environments.digits import digits
from tacit.errors import ExperimentError
from tacit.evaluation.progressive import Played, play
from tacit.evaluation.sighted import play_sighted
from tacit.evaluation.uniform import play_uniform
from tacit.experiments.curves import after_exploration, band, windowed
from tacit.experiments.spec import Advance, Experiment, Figure, Measured, Place, Plot, Row, Settings, Table

Values: TypeAlias = Any  # what a row's JSON holds under a name that is known

LEARNERS = {"tacit": "tacit, without rewards", "sighted": "sees every reward", "uniform": "uniform choice"}
SEEDS = (40, 41, 42, 43, 44)  # not looked at before; others were, while the length of the experiment was settled
WINDOW = 250  # rounds to a point of the curves

# All else is as it comes: decoder, schedule and training of `TwoView` are its defaults.
PROTOCOL: Settings = {"rounds": 8_000, "explore": 2_000, "passes": 6, "batch": 50}
QUICK: Settings = {**PROTOCOL, "rounds": 2_500, "passes": 2}

ABOUT = f"""
The action is a guess at the digit; the feedback is a picture of the next digit if the guess was right and of the
previous one if it was wrong. Nobody says which means what. tacit (`TwoView`) explores uniformly for
{PROTOCOL["explore"]:,} rounds, which count as 0.1, and then acts on the rewards that it decodes. The learner that
sees every reward has the same network, exploration and number of uniform rounds.

The data set is small: four fifths of its 1,797 images fill {PROTOCOL["rounds"]:,} rounds, so each comes up five or six
times, every time with a feedback picture drawn anew. Accuracy is on the other fifth, which no learner ever meets.
Decoder, schedule and training are tacit's defaults, tuned to nothing; how long to explore and to play was settled on
other seeds than those shown.
""".strip()


@dataclass(frozen=True)
class Digits(Experiment):
    """Every learner on every seed; a seed decides split, order, feedback and initial weights."""

    seeds: tuple[int, ...] = SEEDS

    @property
    def name(self) -> str:
        return "digits"

    @property
    def summary(self) -> str:
        return "handwritten digits from image feedback alone, beside a learner that sees every reward"

    @property
    def about(self) -> str:
        return ABOUT

    def cells(self, quick: bool) -> list[Settings]:
        protocol, seeds = (QUICK, self.seeds[:1]) if quick else (PROTOCOL, self.seeds)
        return [{"learner": learner, "seed": seed, **protocol} for learner in LEARNERS for seed in seeds]

    def rounds(self, settings: Settings) -> int:
        values: Values = settings
        return int(values["rounds"])

    def run_cell(self, settings: Settings, place: Place, advance: Advance) -> Measured:
        played = _play(settings, place, advance)
        return {
            "progressive": played.progressive,
            "test": played.test,
            "after_exploration": after_exploration(played.curve),
            "curve": windowed(played.curve, WINDOW),
        }

    def figures(self, rows: Sequence[Row]) -> dict[str, Figure]:
        found = {}
        for learner in LEARNERS:
            measured = _measured(rows, learner)
            found[f"{learner}.progressive"] = Figure.of([run["progressive"] for run in measured], "reward per round")
            found[f"{learner}.test"] = Figure.of([run["test"] for run in measured], "accuracy")
        for reward in ("hidden", "decoded"):
            after = [run["after_exploration"][reward] for run in _measured(rows, "tacit")]
            found[f"tacit.{reward}_after_exploration"] = Figure.of(after, "reward per round")
        return found

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        figures = self.figures(rows)
        lines = []
        for learner, called in LEARNERS.items():
            reward, test = figures[f"{learner}.progressive"], figures[f"{learner}.test"]
            accuracy = f"{100 * test.value:.1f} % ± {100 * test.spread:.1f} %"
            lines.append((called, f"{reward.value:.3f} ± {reward.spread:.3f}", accuracy))
        protocol: Values = rows[0].settings
        note = f"Mean and standard deviation over {_seeds(rows)}. The first {protocol['explore']:,} of "
        note += f"{protocol['rounds']:,} rounds are uniform and count as 0.1 in the first two lines."
        header = ("learner", "reward per round", "accuracy on unseen digits")
        return [Table("learners", "Digits with image feedback", header, tuple(lines), note)]

    def plots(self, rows: Sequence[Row]) -> list[Plot]:
        runs = {learner: [run["curve"] for run in _measured(rows, learner)] for learner in LEARNERS}
        curves = (
            band("tacit: hidden reward", runs["tacit"], "hidden"),
            band("tacit: decoded reward, all it ever sees", runs["tacit"], "decoded"),
            band("sees every reward", runs["sighted"], "hidden", dashed=True),
            band("uniform choice", runs["uniform"], "hidden", dashed=True),
        )
        note = f"Mean over {_seeds(rows)}, with a band of one standard deviation."
        return [Plot("rewards", "Digits with image feedback", "round", "reward per round", curves, note=note)]


def _play(settings: Settings, place: Place, advance: Advance) -> Played:
    s: Values = settings
    environment = digits(s["seed"], place.device, s["passes"])
    models = Networks(on=place.device)
    if s["learner"] == "uniform":
        return play_uniform(environment, s["rounds"], s["batch"], seed=s["seed"], advance=advance)
    problem = environment.problem
    learner = TwoView(
        problem.actions, problem.context, problem.feedback, explore=s["explore"], models=models, seed=s["seed"]
    )  # fmt: skip
    if s["learner"] == "sighted":
        return play_sighted(
            environment, s["explore"], models, s["rounds"], s["batch"],
            schedule=learner.schedule, seed=s["seed"], advance=advance,
        )  # fmt: skip
    played = play(environment, learner, s["rounds"], s["batch"], advance)
    if learner.exploring:
        raise ExperimentError(f"the feedback was never understood: {learner.fit_quality}")
    return played


def _measured(rows: Sequence[Row], learner: str) -> list[Values]:
    """What each seed of a learner measured."""
    return [row.measured for row in rows if row.settings["learner"] == learner]


def _seeds(rows: Sequence[Row]) -> str:
    count = len(_measured(rows, "tacit"))
    return f"{count} seed{'s' * (count > 1)}"
