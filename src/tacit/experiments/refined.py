"""What tacit's own algorithm makes of MNIST with image feedback, beside a learner that sees every reward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from tacit.algorithms import OffPolicy, TwoView
from tacit.environments.mnist import load, mnist
from tacit.evaluation.progressive import play
from tacit.evaluation.sighted import play_sighted
from tacit.experiments.brief import networks
from tacit.experiments.curves import band, whole
from tacit.experiments.spec import Advance, Experiment, Figure, Measured, Place, Plot, Row, Settings, Table

Values: TypeAlias = Any  # what a row's JSON holds under a name that is known

T, N = 60_000, 5_000
FEWER = 2_000  # rounds from which an inverse model has to learn as well
BATCH = 50  # rounds between two changes of the policy
SEEDS = tuple(range(10, 14))  # 0 to 2 were looked at while the algorithm was made
EARLY_SEEDS = tuple(range(10, 20))
QUICK = 400  # exploration rounds of the protocol's quick shape
WINDOW = 500  # rounds to a point of the curves

# What is played: how many rounds are explored, and the chance of a reward for the right digit and for a wrong one.
PROBLEMS: dict[str, Settings] = {
    "n5000": {"explore": N, "right": 1.0, "wrong": 0.0},
    "free": {"explore": "auto", "right": 1.0, "wrong": 0.0},
    "stochastic": {"explore": N, "right": 0.85, "wrong": 0.03},
}
CALLED = {
    "n5000": f"N = {N:,}", "free": "N chosen by the learner", "stochastic": f"N = {N:,}, rewards .85 and .03",
    "off_policy": f"off-policy, N = {N:,} twice", "early": f"right after N = {FEWER:,}",
}  # fmt: skip

# In the place of a run in cells without one: all cells measure under the same names.
NOT_PLAYED: Measured = {
    "progressive": None, "test": None, "seconds": None, "curve": {"rounds": [], "hidden": [], "decoded": []},
}  # fmt: skip

ABOUT = f"""
The problem, the protocol and the count of uniform rounds as 1/10 are those of the experiment `mnist`: {T:,} rounds,
each training image once, hidden reward for scoring alone. Every setting of the learners is as it comes; decisions are
made in batches of {BATCH}. `TwoView` plays with {N:,} uniform rounds, with as many as it finds right itself, and with
rewards left to chance. Beside it plays a learner that sees every reward, with the same networks, schedule and number of
uniform rounds. `OffPolicy` is Algorithm 1 with the networks as they come. {len(EARLY_SEEDS)} runs that end after
N = {FEWER:,} show whether inverse models always train: one that is no better than chance counts as chance.

Where the learner chooses how long to explore, two of the four seeds (10 and 12) first acted after {FEWER:,} rounds
without one of the digits and ended at .906 and .891 test accuracy. Only then did it begin to count contexts of which
nothing is known, and these two were played again: that line is not from seeds that nobody had looked at.
""".strip()


class Refined(Experiment):
    """Every problem with every seed; the learner that sees rewards plays in the same cell."""

    @property
    def name(self) -> str:
        return "refined"

    @property
    def family(self) -> str:
        return "mnist"

    @property
    def summary(self) -> str:
        return "MNIST with image feedback, refined while acting, beside a learner that sees every reward"

    @property
    def about(self) -> str:
        return ABOUT

    def prepare(self, place: Place) -> None:
        load(place.data)

    def cells(self, quick: bool) -> list[Settings]:
        means, more = (SEEDS[:1], SEEDS[:1]) if quick else (SEEDS, EARLY_SEEDS)
        usual: Settings = {"learner": "two_view", "problem": "n5000", "rounds": T, **PROBLEMS["n5000"]}
        early: Settings = {**usual, "problem": "early", "rounds": FEWER, "explore": FEWER}
        cells: list[Settings] = [
            {**usual, "problem": name, **problem, "sighted": True, "seed": seed}
            for name, problem in PROBLEMS.items() for seed in means
        ]  # fmt: skip
        cells += [{**usual, "learner": "off_policy", "problem": "off_policy", "seed": seed} for seed in means]
        cells += [{**early, "seed": seed} for seed in more]
        return [{**cell, **_short(cell)} for cell in cells] if quick else cells

    def rounds(self, settings: Settings) -> int:
        values: Values = settings
        return (1 + bool(values.get("sighted"))) * int(values["rounds"])

    def run_cell(self, settings: Settings, place: Place, advance: Advance) -> Measured:
        s: Values = settings
        environment = mnist(s["seed"], place.device, place.data, right=s["right"], wrong=s["wrong"])
        problem, models = environment.problem, networks(place, brief="brief" in s)
        kind = {"two_view": TwoView, "off_policy": OffPolicy}[s["learner"]]
        learner = kind(
            problem.actions, problem.context, problem.feedback, explore=s["explore"], models=models, seed=s["seed"]
        )
        played = play(environment, learner, s["rounds"], BATCH, advance)
        fit = learner.fit_quality
        found: Measured = {
            "learner": whole(played, WINDOW),
            "inverse_loss": None if fit is None else fit.loss,
            "trusted": not learner.exploring,
            "explored": None,
            "refinement": None,
            "sighted": NOT_PLAYED,
        }
        if isinstance(learner, TwoView):
            found |= {"explored": learner.explored, "refinement": str(learner.refinement)}
            if s.get("sighted"):
                found["sighted"] = whole(play_sighted(
                    environment, learner.explored, models, s["rounds"], BATCH,
                    schedule=learner.schedule, seed=s["seed"], advance=advance,
                ), WINDOW)  # fmt: skip
        return found

    def figures(self, rows: Sequence[Row]) -> dict[str, Figure]:
        found: dict[str, Figure] = {}
        for problem in PROBLEMS:
            for name, learner in (("refined", "learner"), ("true_reward", "sighted")):
                runs = [run[learner] for run in _runs(rows, problem)]
                found[f"{name}.{problem}.progressive"] = _figure(runs, "progressive", "reward per round")
                found[f"{name}.{problem}.test"] = _figure(runs, "test", "accuracy")
        found["refined.free.explored"] = Figure.of([run["explored"] for run in _runs(rows, "free")], "rounds")
        every = [run["learner"] for run in _runs(rows, "n5000")]
        found[f"refined.worst_of_{len(every)}.test"] = Figure(min(_all(every, "test")), 0.0, len(every), "accuracy")
        found["refined.seconds_per_seed_cpu"] = _figure(every, "seconds", "seconds")
        off_policy = [run["learner"] for run in _runs(rows, "off_policy")]
        found["off_policy.improved.test"] = _figure(off_policy, "test", "accuracy")
        early = _runs(rows, "early")
        found["inverse.n2000.trusted"] = Figure.of([float(run["trusted"]) for run in early], "share of seeds")
        tests = _all([run["learner"] for run in early], "test")
        found[f"inverse.n2000.worst_of_{len(early)}.test"] = Figure(min(tests), 0.0, len(early), "accuracy")
        return found

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        lines = []
        for problem, called in CALLED.items():
            runs = _runs(rows, problem)
            mine = [run["learner"] for run in runs]
            theirs = [run["sighted"] for run in runs if run["sighted"]["seconds"]]
            explored = [run["explored"] for run in runs if run["explored"]]
            worst = min(_all(mine, "test"))
            lines.append((
                called, f"{sum(explored) / len(explored):,.0f}" if explored else f"{2 * N:,}",
                _shown(mine, "progressive"), _shown(theirs, "progressive"), _shown(mine, "test", 100),
                _shown(theirs, "test", 100), f"{100 * worst:.1f}", str(len(runs)),
                f"{_figure(mine, 'seconds', '').value:.0f}",
            ))  # fmt: skip
        header = (
            "problem", "uniform rounds", "progressive", "sees the reward", "test, %", "sees the reward",
            "worst test, %", "of seeds", "seconds",
        )  # fmt: skip
        note = "Means and standard deviations over the seeds; seconds on one core, with other work beside it."
        return [Table("refined", "MNIST with image feedback, refined while acting", header, tuple(lines), note)]

    def plots(self, rows: Sequence[Row]) -> list[Plot]:
        runs = _runs(rows, "free")
        mine, theirs = ([run[learner]["curve"] for run in runs] for learner in ("learner", "sighted"))
        curves = (
            band("tacit: hidden reward", mine, "hidden"),
            band("tacit: decoded reward, all it ever sees", mine, "decoded"),
            band("sees every reward", theirs, "hidden", dashed=True),
        )
        note = f"Mean and standard deviation over {len(runs)} seeds of means of {WINDOW} rounds. "
        note += "Uniform rounds count as 1/10 and decode nothing."
        title = "MNIST, exploring as long as it has to"
        return [Plot("rewards", title, "round", "reward per round", curves, note=note)]


def _short(cell: Settings) -> Settings:
    explore = "auto" if cell["explore"] == "auto" else QUICK
    return {"rounds": QUICK if cell["problem"] == "early" else 3 * QUICK, "explore": explore, "brief": True}


def _runs(rows: Sequence[Row], problem: str) -> list[Values]:
    return [row.measured for row in rows if row.settings["problem"] == problem]


def _all(runs: Sequence[Values], name: str) -> list[float]:
    return [run[name] for run in runs]


def _figure(runs: Sequence[Values], name: str, unit: str) -> Figure:
    return Figure.of(_all(runs, name), unit)


def _shown(runs: Sequence[Values], name: str, times: int = 1) -> str:
    if not runs:
        return "-"
    figure, digits = _figure(runs, name, ""), 3 if times == 1 else 1
    return f"{times * figure.value:.{digits}f} ({times * figure.spread:.{digits}f})"
