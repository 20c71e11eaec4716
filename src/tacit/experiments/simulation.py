"""Both algorithms on a finite world, many runs side by side: exact but for chance itself.

The posterior is the exact risk minimiser, the oracle is Vovk's, N and gamma are the theory's, and regret is summed from
expected rewards, not from drawn ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from tacit.algorithms import Horizon
from tacit.decoder import Decoder, G, posterior
from tacit.environments.finite import FiniteInstance, FunctionClasses, draw_rounds, react, react_to_each
from tacit.exploration import draw
from tacit.inverse.finite import count, risks
from tacit.oracles.vovk import ETA

Numbers: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]

# How much is drawn at once; these bound the memory and change nothing else. In so few rounds no candidate loses so much
# that all weights vanish.
SEEDS_AT_ONCE, ROUNDS_AT_ONCE = 128, 512

# Scores closer than this are equal but for rounding, and a coin decides.
TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Task:
    """What both algorithms are given: a world, the classes that contain it, a decoder, and the number of rounds."""

    instance: FiniteInstance
    classes: FunctionClasses
    decoder: Decoder
    horizon: Horizon

    @property
    def size(self) -> tuple[int, float]:
        """K and sigma, as the theory wants them; sigma is the ramp's for the step decoder too."""
        return self.instance.shape[2], self.instance.decoder.sigma

    @property
    def uniform_regret(self) -> float:
        """Expected regret of one uniformly drawn action."""
        return float(self.instance.contexts @ self.instance.gaps.mean(-1))


@dataclass(frozen=True)
class Outcome:
    """Mean regret over all rounds and its standard error; how many rounds were uniform, and the regret in those."""

    regret: float
    error: float
    uniform_rounds: int
    uniform_regret: float


@dataclass(frozen=True, eq=False)
class Block:
    """Rounds (runs, n) to be played: contexts, and uniform numbers for actions and, (runs, n, 2), for reactions."""

    contexts: Tensor
    actions: Tensor
    reactions: Tensor


# Deals so many runs their next so many rounds.
Deal: TypeAlias = Callable[[int, int], Block]
Advance: TypeAlias = Callable[[int], None]


def dealer(instance: FiniteInstance, source: torch.Generator) -> Deal:
    def deal(runs: int, rounds: int) -> Block:
        contexts, reactions = draw_rounds(instance, (runs, rounds), source)
        return Block(contexts, torch.rand(runs, rounds, generator=source, dtype=torch.float64), reactions)

    return deal


def off_policy(task: Task, seeds: int, source: torch.Generator, advance: Advance) -> Outcome:
    """Algorithm 1, its regret after exploration in expectation over contexts."""
    T, N = task.horizon.rounds, task.horizon.off_policy_rounds(*task.size)
    deal = dealer(task.instance, source)
    lost = torch.cat([exploit(task, deal(runs, N), deal(runs, N), source) for runs in _parts(seeds)])
    advance(T)
    uniform_regret = 2 * N * task.uniform_regret
    regret = uniform_regret + (T - 2 * N) * lost
    return Outcome(float(regret.mean()), float(regret.std() / seeds**0.5), 2 * N, uniform_regret)


def exploit(task: Task, first: Block, second: Block, source: torch.Generator | None = None) -> Tensor:
    """What a round costs (runs,) with the policy that each run learns from N uniform rounds and N more."""
    X, _, K = task.instance.shape
    h = posteriors(task, learn(task, first, source))
    contexts, feedback, actions = explore(task.instance, second)
    decoded = decode(h, task.decoder)[torch.arange(len(h))[:, None], contexts, feedback, actions]
    totals = decoded.new_zeros(len(h), X * K).scatter_add(1, contexts * K + actions, decoded)
    policies = functional.one_hot(task.classes.f.argmax(-1).unique(dim=0), K).to(decoded)
    best = toss(totals @ policies.flatten(1).T, source).argmax(-1)
    return torch.einsum("x,xa,pxa->p", task.instance.contexts, task.instance.gaps, policies)[best]


def on_policy(task: Task, seeds: int, plays: int, source: torch.Generator, advance: Advance) -> Outcome:
    """Algorithm 2, its regret in expectation over the action drawn.

    All that a run takes along from exploration is its posterior. So each posterior that some of the seeds have come to
    is played `plays` times, on behalf of all of them.
    """
    N = task.horizon.on_policy_rounds(*task.size)
    deal = dealer(task.instance, source)
    learned = torch.cat([learn(task, deal(runs, N), source) for runs in _parts(seeds)])
    advance(N)
    distinct, times = learned.unique(return_counts=True)
    uniform_regret = N * task.uniform_regret
    regret = uniform_regret + act(task, posteriors(task, distinct.repeat_interleave(plays)), deal, advance)
    regret, share = regret.view(-1, plays), times.double() / seeds
    means = regret.mean(1)
    between = share @ (means - share @ means).square() / seeds
    within = share.square() @ regret.var(1) / plays
    return Outcome(float(share @ means), float((between + within).sqrt()), N, uniform_regret)


def act(task: Task, h: Tensor, deal: Deal, advance: Advance) -> Tensor:
    """Regret (runs,) of Algorithm 2 after its N uniform rounds, by posteriors h (runs, X, Y, K)."""
    f, (runs, X, Y, K) = task.classes.f, h.shape
    # A column of ones beside what the candidates say of a context adds up their weights.
    said = torch.cat([f, f.new_ones(len(f), X, 1)], 2).flatten(1).numpy()
    steps = (-ETA * (f.movedim(0, -1)[:, None] - decode(h, task.decoder)[..., None]).square()).flatten(0, 3).numpy()
    oracles = Oracles(said, steps, task.horizon.gamma(*task.size), np.zeros((runs, len(f))))
    regret = torch.zeros(runs, dtype=torch.float64)
    left = task.horizon.rounds - task.horizon.on_policy_rounds(*task.size)
    while left:
        rounds = min(ROUNDS_AT_ONCE, left)
        block = deal(runs, rounds)
        feedback, _ = react_to_each(task.instance, block.contexts, block.reactions)
        row = (torch.arange(runs)[:, None] * X + block.contexts)[..., None]
        here = row * (K + 1) + torch.arange(K + 1)
        outcomes = (row * Y + feedback) * K + torch.arange(K)
        in_turn = (column.transpose(0, 1).contiguous().numpy() for column in (here, outcomes, block.actions[..., None]))
        probabilities = torch.from_numpy(oracles.play(*in_turn)).transpose(0, 1)
        regret += (probabilities * task.instance.gaps[block.contexts]).sum((1, 2))
        left -= rounds
        advance(rounds)
    return regret


@dataclass(frozen=True, eq=False)
class Oracles:
    """Vovk's oracle and inverse-gap weighting of many runs, in plain arrays, as every round waits for the one before.

    It does what `VovkOracle`, `inverse_gap` and `draw` do together, in a fraction of the time. log_weights (runs, |F|)
    change while playing. said (|F|, X * (K + 1)), steps (runs * X * Y * K, |F|): what a round's outcome adds to the
    log-weights.
    """

    said: Numbers
    steps: Numbers
    gamma: float
    log_weights: Numbers

    def play(self, here: Indices, outcomes: Indices, uniforms: Numbers) -> Numbers:
        """Probabilities (n, runs, K) of n rounds, from uniform numbers (n, runs, 1).

        here (n, runs, K + 1) are the places of the round's context in the predictions of all runs, outcomes
        (n, runs, K) the rows of `steps`, one for each action.
        """
        n, runs, K = outcomes.shape
        start = K * np.arange(runs)
        outcomes = outcomes.reshape(n, runs * K)
        played = np.empty((n, runs, K))
        log_weights = self.log_weights
        log_weights -= log_weights.max(1, keepdims=True)
        for t in range(n):
            predicted = np.dot(np.exp(log_weights), self.said).take(here[t])
            values, scale = predicted[:, :K], predicted[:, K:] / self.gamma
            # 1 / (K + gamma * gap), but of values that are not yet divided by the sum of the weights.
            probabilities = np.divide(scale, K * scale + values.max(1, keepdims=True) - values, out=played[t])
            probabilities.reshape(-1)[start + values.argmax(1)] += 1 - probabilities.sum(1)
            actions = (probabilities.cumsum(1)[:, :-1] <= uniforms[t]).sum(1)
            log_weights += self.steps.take(outcomes[t].take(start + actions), 0)
        return played


def explore(instance: FiniteInstance, block: Block) -> tuple[Tensor, Tensor, Tensor]:
    """Contexts, feedback and actions (runs, n) of a block whose actions are drawn uniformly."""
    K = instance.shape[2]
    actions = draw(instance.f.new_full((K,), 1 / K), block.actions)
    feedback, _ = react(instance, block.contexts, actions, block.reactions)
    return block.contexts, feedback, actions


def learn(task: Task, block: Block, source: torch.Generator | None = None) -> Tensor:
    """Which posterior (runs,) is the risk minimiser on each run's uniform rounds."""
    counts = count(*explore(task.instance, block), shape=task.instance.shape)
    return toss(-risks(task.classes.f, task.classes.phi, counts).flatten(1), source).argmax(-1)


def toss(scores: Tensor, source: torch.Generator | None) -> Tensor:
    """Scores of which the best are equally likely to be the highest; as they are, the first wins, without a source."""
    return scores if source is None else scores + TIE * torch.rand(scores.shape, generator=source, dtype=scores.dtype)


def posteriors(task: Task, learned: Tensor) -> Tensor:
    """h (runs, X, Y, K) of the posteriors that `learn` names."""
    f, phi = learned // len(task.classes.phi), learned % len(task.classes.phi)
    return posterior(task.classes.f[f][:, :, None], task.classes.phi[phi])


def decode(h: Tensor, decoder: Decoder) -> Tensor:
    """The decoded reward of every context, feedback and action (runs, X, Y, K)."""
    return G(h, decoder.beta, decoder.sigma)


def _parts(seeds: int) -> Iterator[int]:
    """Seeds in parts that explore at once."""
    for start in range(0, seeds, SEEDS_AT_ONCE):
        yield min(SEEDS_AT_ONCE, seeds - start)
