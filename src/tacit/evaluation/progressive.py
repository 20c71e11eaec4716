"""The progressive loop: act, be scored on the hidden reward, learn from the feedback alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor

from tacit.algorithms import Learner
from tacit.environments import Arrival, Environment
from tacit.interactions import HiddenReward, checked_before

CHUNK = 2_000

# Plays a batch: rewards as they count, and decoded rewards, NaN where there are none.
Turn: TypeAlias = Callable[[Arrival], tuple[Tensor, Tensor]]
Advance: TypeAlias = Callable[[int], None]


def unheard(rounds: int) -> None:
    """For whoever does not want to know how far it is."""


@dataclass
class Curve:
    """Means of hidden and decoded reward per batch, kept on the device until they are asked for."""

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


def play(environment: Environment, learner: Learner, rounds: int, batch: int, advance: Advance = unheard) -> Played:
    """`rounds` rounds in batches; uniform rounds count as 1/K. `advance` hears how many rounds were played."""
    K = environment.problem.actions

    def turn(arrival: Arrival) -> tuple[Tensor, Tensor]:
        explored = learner.exploring
        decision = learner.choose(arrival.contexts)
        feedback, hidden = arrival.react(decision.actions)
        decoded = learner.learn(decision, feedback)
        rewards = scored(hidden)
        return torch.full_like(rewards, 1 / K) if explored else rewards, decoded

    return follow(environment, turn, lambda: test(environment, learner), rounds, batch, advance)


def follow(
    environment: Environment, turn: Turn, score: Callable[[], float], rounds: int, batch: int, advance: Advance
) -> Played:
    """The loop itself, whoever plays; `score` tests the finished policy.

    Where the environment checked its data when it was made, nobody waits for the device to check it again.
    """
    curve = Curve()
    started = time.perf_counter()
    with checked_before() if environment.checked else nullcontext():
        for arrival in environment.stream(rounds, batch):
            curve.add(*turn(arrival))
            advance(len(arrival.contexts))
    progressive = curve.progressive()
    return Played(progressive, score(), time.perf_counter() - started, curve)


def test(environment: Environment, learner: Learner) -> float:
    """Average hidden reward of the greedy policy on held-out contexts; 1/K if the learner never left exploration."""
    return 1 / environment.problem.actions if learner.exploring else test_policy(environment, learner.greedy)


def test_policy(environment: Environment, policy: Callable[[Tensor], Tensor]) -> float:
    """Average hidden reward on held-out contexts of the actions (n,) that a policy takes for contexts (n, ...)."""
    held = environment.held_out()
    chosen = [policy(held.contexts[start : start + CHUNK]) for start in range(0, len(held.contexts), CHUNK)]
    return float(scored(held.reward(torch.cat(chosen))).mean())


def scored(hidden: HiddenReward) -> Tensor:
    """The one place where a hidden reward becomes numbers."""
    return hidden.values
