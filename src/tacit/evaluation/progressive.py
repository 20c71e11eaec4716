"""The progressive loop: act, be scored on the hidden reward, learn from the feedback alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from tacit.algorithms import Learner
from tacit.environments import Environment
from tacit.interactions import HiddenReward, checked_before

CHUNK = 2_000


@dataclass
class Curve:
    """Sums of hidden and decoded reward per batch, kept on the device until they are asked for."""

    sizes: list[int] = field(default_factory=list)
    hidden: list[Tensor] = field(default_factory=list)
    decoded: list[Tensor] = field(default_factory=list)

    def add(self, hidden: Tensor, decoded: Tensor) -> None:
        self.sizes.append(len(hidden))
        self.hidden.append(hidden.mean())
        self.decoded.append(decoded.mean())

    def rounds(self) -> Tensor:
        """Number of rounds played after each batch."""
        return torch.tensor(self.sizes).cumsum(0)

    def hidden_means(self) -> Tensor:
        return torch.stack(self.hidden).double().cpu()

    def decoded_means(self) -> Tensor:
        """NaN where the learner still explored."""
        return torch.stack(self.decoded).double().cpu()

    def progressive(self) -> float:
        """Average hidden reward over all rounds."""
        sizes = torch.tensor(self.sizes, dtype=torch.float64)
        return float((self.hidden_means() * sizes).sum() / sizes.sum())


@dataclass(frozen=True)
class Played:
    """What a learner did in one pass, and how its finished policy does on held-out contexts."""

    progressive: float
    test: float
    seconds: float
    curve: Curve


def play(
    environment: Environment, learner: Learner, rounds: int, batch: int,
    advance: Callable[[int], None] = lambda rounds: None,
) -> Played:  # fmt: skip
    """`rounds` rounds in batches; uniform rounds count as 1/K. `advance` hears how many rounds were played.

    The environment checked its data when it was made, so the learner does not wait for the device to check it again.
    """
    K = environment.problem.actions
    curve = Curve()
    started = time.perf_counter()
    with checked_before():
        for arrival in environment.stream(rounds, batch):
            explored = learner.exploring
            decision = learner.choose(arrival.contexts)
            feedback, hidden = arrival.react(decision.actions)
            decoded = learner.learn(decision, feedback)
            rewards = scored(hidden)
            curve.add(torch.full_like(rewards, 1 / K) if explored else rewards, decoded)
            advance(len(rewards))
    progressive = curve.progressive()
    return Played(progressive, test(environment, learner), time.perf_counter() - started, curve)


def test(environment: Environment, learner: Learner) -> float:
    """Average hidden reward of the greedy policy on held-out contexts; 1/K if the learner never left exploration."""
    if learner.exploring:
        return 1 / environment.problem.actions
    held = environment.held_out()
    chosen = [learner.greedy(held.contexts[start : start + CHUNK]) for start in range(0, len(held.contexts), CHUNK)]
    return float(scored(held.reward(torch.cat(chosen))).mean())


def scored(hidden: HiddenReward) -> Tensor:
    """The one place where a hidden reward becomes numbers."""
    return hidden.values
