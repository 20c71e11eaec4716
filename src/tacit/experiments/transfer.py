"""The same settings on five data sets that they were not made for, beside a learner that sees every reward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tacit.algorithms import TwoView
from tacit.environments import fashion, tables
from tacit.environments.classification import Classification
from tacit.environments.digits import digits
from tacit.evaluation.progressive import play
from tacit.evaluation.sighted import play_sighted
from tacit.experiments.brief import networks
from tacit.experiments.curves import band, whole
from tacit.experiments.spec import Advance, Experiment, Figure, Measured, Place, Plot, Row, Settings, Table

Values: TypeAlias = Any  # what a row's JSON holds under a name that is known


@dataclass(frozen=True)
class DataSet:
    """What it is called, and how many rounds are played on it."""

    called: str
    rounds: int


SETS = {
    "digits": DataSet("digits, 8 x 8 pixels", 14_380),
    "fashion": DataSet("Fashion-MNIST", 30_000),
    "penbased": DataSet("penbased: digits, as a pen's path", tables.ROUNDS),
    "satimage": DataSet("satimage: ground from a satellite", tables.ROUNDS),
    "optdigits": DataSet("optdigits: digits, as counts of pixels", tables.ROUNDS),
}
PASSES = 10  # how often each of the digits comes up; they are few
DRAWN = "fashion"  # the set whose rewards are drawn

SEEDS = (20, 21, 22, 23)  # not looked at before
BATCH = 50  # rounds between two changes of the policy
SHORT: Settings = {"rounds": 600, "brief": True}
WINDOW = 500  # rounds to a point of the curves
LEARNERS = ("learner", "sighted")

ABOUT = """
One learner, with every setting as it comes, on five data sets: images and rows of numbers, 6 or 10 classes. The action
is a guess at the class; the feedback is an example of the next class if the guess was right and of the previous one if
it was wrong. Nothing was tuned to any of the sets, and the seeds were not looked at before.

Beside it plays a learner that sees every reward, with the same networks, the same schedule and as many uniform rounds
as the first one chose to draw. The **share of true reward** is the test accuracy of the learner that sees no reward
divided by that of the one that sees them all, seed by seed: what is lost by not being told.

Fashion-MNIST shows half of its training images, each once. The other sets are smaller: four fifths of their rows come
up again and again, every time with feedback drawn anew. Test accuracy is on rows or images that nobody ever learns
from.
""".strip()


class Transfer(Experiment):
    """Every set on every seed; a seed decides split, order, feedback and initial weights."""

    @property
    def name(self) -> str:
        return "transfer"

    @property
    def summary(self) -> str:
        return "the same settings, untouched, on digits, Fashion-MNIST, penbased, satimage and optdigits"

    @property
    def about(self) -> str:
        return ABOUT

    def prepare(self, place: Place) -> None:
        for name in SETS:
            world(name, SEEDS[0], place)

    def cells(self, quick: bool) -> list[Settings]:
        seeds, short = (SEEDS[:1], SHORT) if quick else (SEEDS, {})
        return [
            {"set": name, "rounds": each.rounds, "batch": BATCH, "seed": seed, **short}
            for name, each in SETS.items() for seed in seeds
        ]  # fmt: skip

    def rounds(self, settings: Settings) -> int:
        values: Values = settings
        return len(LEARNERS) * int(values["rounds"])

    def run_cell(self, settings: Settings, place: Place, advance: Advance) -> Measured:
        """First the learner: how long it explores is for it to say, and then holds for the sighted one as well."""
        s: Values = settings
        environment = world(s["set"], s["seed"], place)
        models = networks(place, brief="brief" in s)
        problem = environment.problem
        learner = TwoView(problem.actions, problem.context, problem.feedback, models=models, seed=s["seed"])
        played = play(environment, learner, s["rounds"], s["batch"], advance)
        sighted = play_sighted(
            environment, learner.explored, models, s["rounds"], s["batch"],
            schedule=learner.schedule, seed=s["seed"], advance=advance,
        )  # fmt: skip
        return {
            "actions": problem.actions,
            "explored": learner.explored,
            "understood": not learner.exploring,
            "learner": whole(played, WINDOW),
            "sighted": whole(sighted, WINDOW),
        }

    def figures(self, rows: Sequence[Row]) -> dict[str, Figure]:
        found = {}
        for name in SETS:
            tests = {learner: [run[learner]["test"] for run in _runs(rows, name)] for learner in LEARNERS}
            shares = [mine / theirs for mine, theirs in zip(*tests.values(), strict=True)]
            found[f"{name}.share_of_true_reward"] = Figure.of(shares, "share")
            found[f"{name}.test"] = Figure.of(tests["learner"], "accuracy")
            found[f"{name}.sighted_test"] = Figure.of(tests["sighted"], "accuracy")
        return found

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        figures = self.figures(rows)
        lines = []
        for name, each in SETS.items():
            runs, played = _runs(rows, name), _rounds(rows, name)
            explored = Figure.of([run["explored"] for run in runs], "rounds")
            tests = (_percent(figures[f"{name}.{what}"]) for what in ("test", "sighted_test", "share_of_true_reward"))
            lines.append((each.called, str(runs[0]["actions"]), f"{played:,}", f"{explored.value:,.0f}", *tests))
        header = ("data", "K", "rounds", "of them uniform", "accuracy", "seeing every reward", "share")
        note = f"Mean and standard deviation over {_seeds(rows)}; accuracy on rows that nobody learned from."
        failed = sum(not run["understood"] for name in SETS for run in _runs(rows, name))
        if failed:
            note += f" In {failed} of {len(rows)} runs the feedback was never understood, which counts as chance."
        return [Table("sets", "The same settings on five data sets", header, tuple(lines), note)]

    def plots(self, rows: Sequence[Row]) -> list[Plot]:
        mine, theirs = ([run[learner]["curve"] for run in _runs(rows, DRAWN)] for learner in LEARNERS)
        curves = (
            band("tacit: hidden reward", mine, "hidden"),
            band("tacit: decoded reward, all it ever sees", mine, "decoded"),
            band("sees every reward", theirs, "hidden", dashed=True),
        )
        note = f"Mean over {_seeds(rows)}, with a band of one standard deviation."
        title = f"{SETS[DRAWN].called} with image feedback"
        return [Plot("rewards", title, "round", "reward per round", curves, note=note)]


def world(name: str, seed: int, place: Place) -> Classification:
    """A data set as rounds."""
    if name == "fashion":
        return fashion.fashion(seed, place.device, place.data)
    if name == "digits":
        return digits(seed, place.device, PASSES)
    return tables.tabular(name, seed, place.device)


def _runs(rows: Sequence[Row], name: str) -> list[Values]:
    """What each seed measured on a data set."""
    return [row.measured for row in rows if row.settings["set"] == name]


def _rounds(rows: Sequence[Row], name: str) -> int:
    played: list[Values] = [row.settings["rounds"] for row in rows if row.settings["set"] == name]
    return int(played[0])


def _seeds(rows: Sequence[Row]) -> str:
    count = len(_runs(rows, DRAWN))
    return f"{count} seed{'s' * (count > 1)}"


def _percent(figure: Figure) -> str:
    return f"{100 * figure.value:.1f} % ± {100 * figure.spread:.1f} %"
