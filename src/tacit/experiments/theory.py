"""Regret against rounds and actions on finite worlds, where the theorems apply: is it of the order T^(2/3) K^(2/3)?

Everything is exact but chance itself: the class is finite, the posterior is the exact risk minimiser, the oracle is
Vovk's, N and gamma are the theory's, and regret is summed from expected rewards, not from drawn ones. A cell is one
setting with all its seeds side by side.

Algorithm 2 needs its rounds one after the other. They are played in blocks all the same: guess all actions of a block,
work out what the oracle would have said before each round, draw the actions again with the same random numbers, and
repeat until nothing changes. As a round depends on earlier ones only, each repetition makes at least one more round
right, and the result is that of the plain loop; a handful of repetitions is enough once the oracle has settled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import count as count_from
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from tacit.algorithms import theory
from tacit.decoder import Decoder, G, posterior
from tacit.environments.finite import (
    FiniteInstance,
    FunctionClasses,
    draw_rounds,
    function_classes,
    random_instance,
    react,
    step_trap,
)  # fmt: skip
from tacit.errors import ExperimentError
from tacit.exploration import draw, inverse_gap
from tacit.inverse.finite import count, risk_minimiser
from tacit.oracles.policies import FinitePolicies
from tacit.oracles.vovk import aggregate, mean_prediction, regret_bound, squared_losses, uniform_log_weights
from tacit.seeding import generator

Row: TypeAlias = dict[str, Any]

# The constants in front of N and gamma, which the theorems leave open: the same for every T, K, decoder and world. They
# keep 2N well below T at T = 1,000, and gamma times a gap well above K, so that it is the bound's regime that is seen.
OFF_POLICY_SCALE = 0.1
ON_POLICY_SCALE = 0.0125
GAMMA_SCALE = 64.0

ROUNDS = (1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000)
ACTIONS = (4, 8, 16, 32)
ROUNDS_FOR_ACTIONS = 100_000
ALPHA, THETA = 1.0, 0.6
CONTEXTS, FEEDBACKS = 8, 4

# Blocks grow while they need few repetitions and shrink otherwise; this changes the time, not the result.
SMALLEST_BLOCK, LARGEST_BLOCK, FEW = 16, 1_024, 12
BOOTSTRAPS = 2_000


@dataclass(frozen=True)
class Cell:
    """One setting: an algorithm with a decoder in a world, for `rounds` rounds and `actions` actions.

    algorithm off_policy or on_policy; decoder lipschitz or step; world random or trap. `sweep` says which slope the
    cell belongs to: rounds or actions. The world depends on `seed` and `actions` alone; `seeds` runs are made in it.
    """

    algorithm: str
    decoder: str
    world: str
    rounds: int
    actions: int
    sweep: str = "rounds"
    seeds: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        allowed: Mapping[str, Iterable[str]] = {
            "algorithm": ALGORITHMS, "decoder": ("lipschitz", "step"), "world": WORLDS, "sweep": ("rounds", "actions")
        }  # fmt: skip
        for name, values in allowed.items():
            if (found := getattr(self, name)) not in values:
                raise ExperimentError(f"{name}: expected one of {', '.join(values)}, got {found!r}")


@dataclass(frozen=True, eq=False)
class Task:
    """What both algorithms are given: a world, the classes that contain it, a decoder, and the number of rounds."""

    instance: FiniteInstance
    classes: FunctionClasses
    decoder: Decoder
    rounds: int

    @property
    def size(self) -> tuple[int, int, float, int]:
        """T, K, sigma and |H|, as the theory's formulas want them; sigma is the ramp's for the step decoder too."""
        return self.rounds, self.instance.shape[2], self.instance.decoder.sigma, self.classes.size

    @property
    def uniform_regret(self) -> float:
        """Expected regret of one uniformly drawn action."""
        return float(self.instance.contexts @ self.instance.gaps.mean(-1))


@dataclass(frozen=True, eq=False)
class Outcome:
    """Regret (seeds,) over all rounds, how many of them were uniform, and the theorem's bound up to its constant."""

    regret: Tensor
    uniform_rounds: int
    bound: float


@dataclass(frozen=True, eq=False)
class Block:
    """Rounds (seeds, n) to be played: contexts, and uniform numbers for actions and, (seeds, n, 2), for reactions."""

    contexts: Tensor
    actions: Tensor
    reactions: Tensor

    @classmethod
    def of(cls, instance: FiniteInstance, seeds: int, rounds: int, source: torch.Generator) -> Block:
        contexts, reactions = draw_rounds(instance, (seeds, rounds), source)
        return cls(contexts, torch.rand(seeds, rounds, generator=source, dtype=torch.float64), reactions)


def cells(quick: bool = False) -> list[Row]:
    """The protocol, as settings for `run_cell`; `quick` is its shape in seconds, with fewer and smaller cells."""
    rounds, actions = (ROUNDS[:3], ACTIONS[:2]) if quick else (ROUNDS, ACTIONS)
    seeds = 8 if quick else 16
    by_rounds = [
        Cell(algorithm, decoder, world, T, {"random": 5, "trap": 4}[world], seeds=seeds)
        for algorithm in ALGORITHMS for decoder in ("lipschitz", "step") for world in WORLDS for T in rounds
    ]  # fmt: skip
    by_actions = [
        Cell(algorithm, "lipschitz", "random", rounds[-1] if quick else ROUNDS_FOR_ACTIONS, K, "actions", seeds)
        for algorithm in ALGORITHMS for K in actions
    ]
    return [asdict(cell) for cell in by_rounds + by_actions]


def run_cell(settings: Mapping[str, Any]) -> Row:
    """The regret of every seed, a list, and what it compares with; the seeds' parts of it from uniform rounds."""
    try:
        cell = Cell(**settings)
    except TypeError as error:
        raise ExperimentError(f"not the settings of a theory cell: {error}") from error
    task = make_task(cell)
    name = f"theory {cell.algorithm} {cell.decoder} {cell.world} {cell.rounds} {cell.actions}"
    outcome = ALGORITHMS[cell.algorithm](task, cell.seeds, generator(cell.seed, name))
    return {
        "regret": outcome.regret.tolist(),
        "uniform_rounds": outcome.uniform_rounds,
        "uniform_regret": outcome.uniform_rounds * task.uniform_regret,
        "bound": outcome.bound,
    }


def make_task(cell: Cell) -> Task:
    source = generator(cell.seed, "theory world")
    instance, classes = WORLDS[cell.world](cell.actions, source)
    decoder = instance.decoder if cell.decoder == "lipschitz" else instance.decoder.step()
    return Task(instance, classes, decoder, cell.rounds)


def off_policy(task: Task, seeds: int, source: torch.Generator) -> Outcome:
    """Algorithm 1, its regret after exploration in expectation over contexts."""
    N = theory.off_policy_rounds(*task.size, OFF_POLICY_SCALE)
    left = _left(task, 2 * N)
    h = learn_posterior(task, seeds, N, source)
    contexts, feedback, actions = explore(task.instance, seeds, N, source)
    decoded = decode(h, task.decoder, contexts, feedback, actions)
    every = torch.arange(task.instance.shape[0])
    regret = torch.zeros(seeds, dtype=torch.float64)
    for seed in range(seeds):
        # Candidates in random order, as ties go to the first: a fixed order would settle them for or against the truth.
        order = torch.randperm(len(task.classes.f), generator=source)
        policies = FinitePolicies(task.classes.f[order])
        policies.maximise(contexts[seed], actions[seed], decoded[seed])
        chosen = policies.scores(every).argmax(-1)
        regret[seed] = task.instance.contexts @ task.instance.gaps[every, chosen]
    return Outcome(2 * N * task.uniform_regret + left * regret, 2 * N, theory.off_policy_bound(*task.size))


def on_policy(task: Task, seeds: int, source: torch.Generator) -> Outcome:
    """Algorithm 2, its regret in expectation over the action drawn."""
    rivals = regret_bound(len(task.classes.f))
    gamma = theory.on_policy_gamma(*task.size, rivals, GAMMA_SCALE)
    N = theory.on_policy_rounds(*task.size, gamma, ON_POLICY_SCALE)
    left = _left(task, N)
    h = learn_posterior(task, seeds, N, source)
    log_weights = uniform_log_weights(task.classes.f).expand(seeds, -1)
    regret = torch.full((seeds,), N * task.uniform_regret, dtype=torch.float64)
    size = SMALLEST_BLOCK
    while left:
        block = Block.of(task.instance, seeds, min(size, left), source)
        log_weights, lost, repetitions = play_block(task, h, gamma, log_weights, block)
        regret += lost.sum(-1)
        left -= lost.shape[-1]
        size = min(2 * size, LARGEST_BLOCK) if repetitions < FEW else max(size // 2, SMALLEST_BLOCK)
    # The bound as the theorem has it, without our constants.
    plain = theory.on_policy_gamma(*task.size, rivals)
    bound = theory.on_policy_bound(*task.size, rivals, plain, theory.on_policy_rounds(*task.size, plain))
    return Outcome(regret, N, bound)


def play_block(task: Task, h: Tensor, gamma: float, log_weights: Tensor, block: Block) -> tuple[Tensor, Tensor, int]:
    """Log-weights (seeds, |F|) after a block played from `log_weights`, the expected regret (seeds, n) in it, repetitions.

    h (seeds, X, Y, K) are the posteriors learned.
    """
    f = task.classes.f
    values = f.movedim(0, 1)[block.contexts]
    before = log_weights[:, None]
    actions = torch.full_like(block.contexts, -1)
    for repetitions in count_from(1):
        probabilities = inverse_gap(mean_prediction(before, values), gamma)
        drawn = draw(probabilities, block.actions)
        if torch.equal(drawn, actions):
            break
        actions = drawn
        feedback, _ = react(task.instance, block.contexts, actions, block.reactions)
        decoded = decode(h, task.decoder, block.contexts, feedback, actions)
        losses = squared_losses(f, block.contexts, actions, decoded)
        summed = losses.cumsum(1)
        # Shifted, not `summed - losses`: even the rounding error of a round must not depend on the round itself.
        before = aggregate(log_weights[:, None], functional.pad(summed[:, :-1], (0, 0, 1, 0)))
    regret = (probabilities * task.instance.gaps[block.contexts]).sum(-1)
    return aggregate(log_weights, summed[:, -1]), regret, repetitions


def explore(instance: FiniteInstance, seeds: int, rounds: int, source: torch.Generator) -> tuple[Tensor, ...]:
    """Contexts, feedback and actions (seeds, rounds) of uniformly drawn rounds."""
    K = instance.shape[2]
    block = Block.of(instance, seeds, rounds, source)
    actions = draw(instance.f.new_full((K,), 1 / K), block.actions)
    feedback, _ = react(instance, block.contexts, actions, block.reactions)
    return block.contexts, feedback, actions


def learn_posterior(task: Task, seeds: int, rounds: int, source: torch.Generator) -> Tensor:
    """The risk minimiser's posterior (seeds, X, Y, K), each seed's from its own uniform rounds."""
    counts = count(*explore(task.instance, seeds, rounds, source), task.instance.shape)
    f, phi = risk_minimiser(task.classes.f, task.classes.phi, counts)
    return posterior(task.classes.f[f][:, :, None], task.classes.phi[phi])


def decode(h: Tensor, decoder: Decoder, contexts: Tensor, feedback: Tensor, actions: Tensor) -> Tensor:
    """Decoded rewards (seeds, n) of the rounds (seeds, n) by posteriors h (seeds, X, Y, K)."""
    seed = torch.arange(len(h))[:, None]
    return G(h[seed, contexts, feedback, actions], decoder.beta, decoder.sigma)


def summarise(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Figures by name from rows that hold a cell's settings and its results: value, error, seeds.

    slope_T and slope_K: of log mean regret against log T and log K, by least squares, and under `bound` the same slope
    of the theorem's bound, whose logarithms and sigma(K) move it off 2/3. step_over_lipschitz: ratio of mean regrets at the largest T.
    Errors are standard deviations over resampled seeds.
    """
    curves: dict[tuple[str, ...], dict[int, Mapping[str, Any]]] = {}
    for row in rows:
        axis = str(row["sweep"])
        key = (axis, row["algorithm"], row["decoder"], row["world"])
        curves.setdefault(key, {})[int(row[axis])] = row
    figures: dict[str, dict[str, float]] = {}
    for (axis, *rest), curve in curves.items():
        if len(curve) > 1:
            figures[".".join([{"rounds": "slope_T", "actions": "slope_K"}[axis], *rest])] = _slope(curve)
    for (axis, algorithm, decoder, world), curve in curves.items():
        step = curves.get((axis, algorithm, "step", world), {})
        if decoder == "lipschitz" and (T := max(curve)) in step:
            figures[f"step_over_lipschitz.{algorithm}.{world}"] = _ratio(step[T], curve[T])
    return figures


def _slope(curve: Mapping[int, Mapping[str, Any]]) -> dict[str, float]:
    at = torch.tensor(sorted(curve), dtype=torch.float64).log()
    at = (at - at.mean()) / (at - at.mean()).square().sum()
    means = torch.stack([_means(curve[x]) for x in sorted(curve)], -1)
    slopes = means.log() @ at
    bound = torch.tensor([curve[x]["bound"] for x in sorted(curve)], dtype=torch.float64).log() @ at
    seeds = min(len(row["regret"]) for row in curve.values())
    return {"value": float(slopes[0]), "error": float(slopes[1:].std()), "bound": float(bound), "seeds": seeds}


def _ratio(above: Mapping[str, Any], below: Mapping[str, Any]) -> dict[str, float]:
    ratios = _means(above) / _means(below)
    return {"value": float(ratios[0]), "error": float(ratios[1:].std()), "seeds": len(above["regret"])}


def _means(row: Mapping[str, Any]) -> Tensor:
    """Mean regret over all seeds, then over seeds resampled from them: (1 + BOOTSTRAPS,), the same for the same row."""
    regret = torch.tensor(row["regret"], dtype=torch.float64)
    source = generator(0, f"bootstrap {row['algorithm']} {row['decoder']} {row['world']} {row['rounds']} {row['actions']}")
    picks = torch.randint(len(regret), (BOOTSTRAPS, len(regret)), generator=source)
    return torch.cat([regret.mean()[None], regret[picks].mean(-1)])


def _left(task: Task, explored: int) -> int:
    if explored >= task.rounds:
        raise ExperimentError(f"rounds: {explored} rounds of exploration leave nothing of {task.rounds} to exploit")
    return task.rounds - explored


def _random_world(actions: int, source: torch.Generator) -> tuple[FiniteInstance, FunctionClasses]:
    instance = random_instance(source, CONTEXTS, actions, FEEDBACKS, THETA, ALPHA)
    return instance, function_classes(instance, source)


def _trap(actions: int, source: torch.Generator) -> tuple[FiniteInstance, FunctionClasses]:
    return step_trap(actions)


WORLDS: Mapping[str, Callable[[int, torch.Generator], tuple[FiniteInstance, FunctionClasses]]] = {
    "random": _random_world,
    "trap": _trap,
}
ALGORITHMS: Mapping[str, Callable[[Task, int, torch.Generator], Outcome]] = {
    "off_policy": off_policy,
    "on_policy": on_policy,
}
