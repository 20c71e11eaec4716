"""Table 1 of the paper: both algorithms with both decoders on MNIST with image feedback, and its left figure.

The paper picks theta/alpha and sigma from a grid and does not say by what. Here the grid is played on a seed of its
own, and the decoder with the most decoded reward after exploration is taken: decoded reward is all that a learner
sees, and with the true posterior the most of it is the best lower bound on the hidden reward. `PICKED` holds that
choice, and a test works it out again from the stored cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from tacit.algorithms import Learner, Models, Networks, OffPolicy, OnPolicy
from tacit.decoder import Decoder
from tacit.encoders import Encoder, Problem
from tacit.environments.mnist import load, mnist
from tacit.evaluation.progressive import Played, play
from tacit.experiments.curves import after_exploration, band, windowed
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
)
from tacit.interactions import Interactions
from tacit.inverse import Fit, InverseModel, RewardModel
from tacit.oracles import Oracle, PolicyOracle
from tacit.storage import Json

Choice: TypeAlias = tuple[str, str]
Pair: TypeAlias = tuple[str, float]  # centre and sigma

T, N, GRID_SEED = 60_000, 5_000, 100
SEEDS = (10, 11, 12, 13)  # seeds 0 to 2 were looked at while the recipe was filled in
BATCH = 10  # rounds between two changes of the policy
QUICK = 300  # exploration rounds of the protocol's quick shape
WINDOW = 500  # rounds to a point of the curves

ALGORITHMS = {"off_policy": "Off-policy", "on_policy": "On-policy"}
DECODERS = {"step": "step", "lipschitz": "Lipschitz"}
SIGMAS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
CENTRES = {"1/3": 1 / 3, "1/2": 1 / 2}  # theta/alpha - sigma/2

# By algorithm and decoder.
PICKED: Mapping[Choice, Pair] = {
    ("off_policy", "step"): ("1/3", 0.05),
    ("off_policy", "lipschitz"): ("1/3", 0.1),
    ("on_policy", "step"): ("1/3", 0.0),
    ("on_policy", "lipschitz"): ("1/3", 0.25),
}

# The paper's means and standard deviations over 4 seeds: progressive reward and test accuracy.
PAPER: Mapping[Choice, tuple[str, str]] = {
    ("off_policy", "step"): ("0.614 (0.012)", "72.6 (1.5)"),
    ("off_policy", "lipschitz"): ("0.638 (0.042)", "75.9 (4.9)"),
    ("on_policy", "step"): ("0.718 (0.006)", "89.4 (4.0)"),
    ("on_policy", "lipschitz"): ("0.740 (0.022)", "90.3 (3.7)"),
}

ABOUT = f"""
The action is a guess at the digit; the feedback is an image of the next digit if the guess was right and of the
previous one if it was wrong. {T:,} rounds, each training image once; the first {N:,} (on-policy) or {2 * N:,}
(off-policy) are uniform and count as 1/10. The recipe is the paper's: COCOB, squared loss, two-layer networks,
gamma_t = sqrt(K t). Where the paper leaves something open or we depart from it, the pages of the algorithms say so.

The paper does not say by what it picks theta/alpha and sigma from its grid. Here the grid is played on a seed that the
table does not use, and the decoder with the most decoded reward after exploration is taken. What else the paper leaves
open (the size of the networks, three starts, batches of 10, the oracle's first guess of 0.1) was filled in on seeds 0
to 2, with an eye on the hidden reward; the table is from seeds that were not looked at before. Seconds are those of the
on-policy cells with either decoder, the fit of the inverse model included; where cells ran side by side they are an
upper bound.
""".strip()


class Mnist(Experiment):
    """The paper's recipe: COCOB, squared loss, two-layer networks, gamma_t = sqrt(K t)."""

    @property
    def name(self) -> str:
        return "mnist"

    @property
    def summary(self) -> str:
        return "Table 1 of the paper: image feedback on MNIST, two algorithms, two decoders, 4 seeds"

    @property
    def about(self) -> str:
        return ABOUT

    def prepare(self, place: Place) -> None:
        load(place.data)

    def cells(self, quick: bool) -> list[Settings]:
        rounds, explore, seeds = (4 * QUICK, QUICK, SEEDS[:1]) if quick else (T, N, SEEDS)
        common: Settings = {"rounds": rounds, "explore": explore}
        pairs: list[Json] = [[centre, sigma] for centre in CENTRES for sigma in SIGMAS]
        grid: list[Settings] = [
            {"algorithm": algorithm, "pairs": pairs[-1:] if quick else pairs, "seed": GRID_SEED, **common}
            for algorithm in ALGORITHMS
        ]
        # The step decoder's theta/alpha comes from the same space; at sigma 0 the two are one.
        steps: list[Json] = [[centre, sigma] for centre in CENTRES for sigma in SIGMAS if sigma]
        grid += [
            {"algorithm": algorithm, "pairs": steps[-1:] if quick else steps, "step": True, "seed": GRID_SEED, **common}
            for algorithm in ALGORITHMS
        ]
        table: list[Settings] = [
            {"algorithm": algorithm, "decoder": decoder, "pairs": [list(pair)], "seed": seed, **common}
            for (algorithm, decoder), pair in PICKED.items() for seed in seeds
        ]  # fmt: skip
        return grid + table

    def rounds(self, settings: Settings) -> int:
        return int(_number(settings["rounds"])) * len(_pairs(settings))

    def run_cell(self, settings: Settings, place: Place, advance: Advance) -> Measured:
        """One run for each pair of the cell; they share the inverse model, as they share the rounds it learns from."""
        seed = int(_number(settings["seed"]))
        environment = mnist(seed, place.device, place.data)
        models = SharedInverse(Networks.paper(place.device))
        runs: list[Json] = []
        for pair in _pairs(settings):
            learner = _learner(settings, pair, environment.problem, models)
            played = play(environment, learner, int(_number(settings["rounds"])), BATCH, advance)
            runs.append(_measured(played, learner))
        return {"runs": runs}

    def figures(self, rows: Sequence[Row]) -> dict[str, Figure]:
        figures: dict[str, Figure] = {}
        table = [row for row in rows if "decoder" in row.settings]
        for algorithm, decoder in PICKED:
            cells = [row for row in table if _choice(row) == (algorithm, decoder)]
            for measure, unit in (("progressive", "reward per round"), ("test", "accuracy")):
                figures[f"paper.{algorithm}.{decoder}.{measure}"] = Figure.of(_numbers(cells, measure), unit)
        on_policy = [row for row in table if row.settings["algorithm"] == "on_policy"]
        for device, where in (("cpu", "cpu"), ("cuda", "gpu")):
            if cells := [row for row in on_policy if row.origin.device.startswith(device)]:
                figures[f"paper.seconds_per_seed_{where}"] = Figure.of(_numbers(cells, "seconds"), "s")
        return figures

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        grid = [row for row in rows if "decoder" not in row.settings]
        return [self._table(rows), *([_grid_table(grid)] if grid else [])]

    def plots(self, rows: Sequence[Row]) -> list[Plot]:
        cells = [row for row in rows if "decoder" in row.settings and _choice(row) == ("on_policy", "lipschitz")]
        runs = [_runs(row)[0]["curve"] for row in cells]
        curves = (band("hidden reward", runs, "hidden"), band("decoded reward", runs, "decoded", dashed=True))
        note = f"Mean and standard deviation over {len(cells)} seeds. Uniform rounds count as 1/10 and decode nothing."
        title = "MNIST, on-policy, Lipschitz decoder"
        return [Plot("rewards", title, "round", f"reward per round (mean of {WINDOW} rounds)", curves, note=note)]

    def _table(self, rows: Sequence[Row]) -> Table:
        figures = self.figures(rows)
        lines = []
        for algorithm, decoder in PICKED:
            progressive, test = (figures[f"paper.{algorithm}.{decoder}.{name}"] for name in ("progressive", "test"))
            reward = f"{progressive.value:.3f} ({progressive.spread:.3f})"
            accuracy = f"{100 * test.value:.1f} ({100 * test.spread:.1f})"
            theirs = PAPER[algorithm, decoder]
            lines.append((ALGORITHMS[algorithm], DECODERS[decoder], reward, theirs[0], accuracy, theirs[1]))
        header = ("algorithm", "decoder", "progressive", "paper", "test, %", "paper")
        note = f"Means and standard deviations over {test.seeds} seeds here and 4 in the paper."
        return Table("table1", "MNIST with image feedback, as Table 1 of the paper", header, tuple(lines), note)


class SharedInverse(Models):
    """The models of `models`, but for one inverse model that all learners made with it have, fitted by the first."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._inverse: FittedOnce | None = None

    @property
    def device(self) -> torch.device:
        return self._models.device

    def inverse(self, problem: Problem, source: torch.Generator) -> InverseModel:
        if self._inverse is None:
            self._inverse = FittedOnce(self._models.inverse(problem, source))
        return self._inverse

    def reward(self, problem: Problem, source: torch.Generator) -> RewardModel:
        return self._models.reward(problem, source)

    def oracle(self, problem: Problem, source: torch.Generator) -> Oracle:
        return self._models.oracle(problem, source)

    def policies(self, problem: Problem, source: torch.Generator) -> PolicyOracle:
        return self._models.policies(problem, source)


class FittedOnce(InverseModel):
    """An inverse model that is always given the same rounds, and so need not learn from them again."""

    def __init__(self, model: InverseModel) -> None:
        self._model = model
        self._fit: Fit | None = None

    def fit(self, rounds: Interactions, test: Interactions | None = None) -> Fit:
        if self._fit is None:
            self._fit = self._model.fit(rounds, test)
        return self._fit

    @property
    def encoders(self) -> tuple[Encoder, Encoder] | None:
        return self._model.encoders

    def posterior(self, contexts: Tensor, feedback: Tensor) -> Tensor:
        return self._model.posterior(contexts, feedback)

    def tensors(self) -> dict[str, Tensor]:
        return self._model.tensors()

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        self._model.restore(tensors)


def theta_over_alpha(pair: Pair) -> float:
    centre, sigma = pair
    return CENTRES[centre] + sigma / 2


def best(grid: Sequence[Row]) -> dict[Choice, Pair]:
    """By algorithm and decoder, the pair that decoded the most reward after exploration."""
    most: dict[Choice, tuple[float, Pair]] = {}
    for row in grid:
        for pair, run in zip(_pairs(row.settings), _runs(row), strict=True):
            choice = _chosen_by(row, pair)
            decoded = _number(run["decoded"])
            if choice not in most or decoded > most[choice][0]:
                most[choice] = decoded, pair
    return {choice: pair for choice, (_, pair) in most.items()}


def _learner(settings: Settings, pair: Pair, problem: Problem, models: Models) -> Learner:
    kind = {"off_policy": OffPolicy, "on_policy": OnPolicy}[str(settings["algorithm"])]
    decoder = Decoder(theta_over_alpha(pair), pair[1])
    if "step" in settings or settings.get("decoder") == "step":
        decoder = decoder.step()
    learner: Learner = kind(
        problem.actions, problem.context, problem.feedback, explore=int(_number(settings["explore"])),
        decoder=decoder, models=models, seed=int(_number(settings["seed"])),
    )  # fmt: skip
    return learner


def _measured(played: Played, learner: Learner) -> Measured:
    return {
        "progressive": played.progressive,
        "test": played.test,
        "seconds": played.seconds,
        "inverse_loss": None if learner.fit_quality is None else learner.fit_quality.loss,
        **after_exploration(played.curve),
        "curve": windowed(played.curve, WINDOW),
    }


def _grid_table(grid: Sequence[Row]) -> Table:
    header = ("algorithm", "decoder", "theta/alpha", "sigma", "decoded", "hidden", "progressive", "test")
    picked = best(grid)
    lines = []
    for row in grid:
        for pair, run in zip(_pairs(row.settings), _runs(row), strict=True):
            choice = _chosen_by(row, pair)
            decoded, *others = (f"{_number(run[name]):.3f}" for name in ("decoded", "hidden", "progressive", "test"))
            mark = " (picked)" if picked[choice] == pair else ""
            width = f"{pair[1]:g}" if choice[1] == "lipschitz" else "0"
            names = ALGORITHMS[choice[0]], DECODERS[choice[1]], f"{theta_over_alpha(pair):.3f}", width
            lines.append((*names, decoded + mark, *others))
    note = f"One seed, {GRID_SEED}, which no other table uses; decoded and hidden reward are those after exploration. "
    note += "For each algorithm and decoder the most decoded reward is picked."
    return Table("grid", "The paper's grid of decoders", header, tuple(lines), note)


def _chosen_by(row: Row, pair: Pair) -> Choice:
    return str(row.settings["algorithm"]), "lipschitz" if pair[1] and "step" not in row.settings else "step"


def _choice(row: Row) -> Choice:
    return str(row.settings["algorithm"]), str(row.settings["decoder"])


def _pairs(settings: Settings) -> list[Pair]:
    pairs: Any = settings["pairs"]
    return [(str(centre), float(sigma)) for centre, sigma in pairs]


def _runs(row: Row) -> list[Measured]:
    runs: Any = row.measured["runs"]
    return list(runs)


def _numbers(rows: Sequence[Row], name: str) -> list[float]:
    return [_number(_runs(row)[0][name]) for row in rows]


def _number(value: Json) -> float:
    """A number out of a row; where a learner never decoded anything, the least there is."""
    return float(value) if isinstance(value, int | float) else -math.inf
