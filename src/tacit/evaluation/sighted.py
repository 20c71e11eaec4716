"""A learner that sees every reward, only to be compared with: it shows what not seeing the reward costs."""

from __future__ import annotations

import torch
from torch import Tensor

from tacit import exploration
from tacit.algorithms.models import Models
from tacit.encoders import Problem
from tacit.environments import Arrival, Environment
from tacit.evaluation.progressive import Advance, Played, follow, scored, test_policy, unheard
from tacit.exploration import Schedule, SquareRoot
from tacit.seeding import generator


def play_sighted(
    environment: Environment, explore: int, models: Models, rounds: int, batch: int,
    *, schedule: Schedule | None = None, seed: int = 0, advance: Advance = unheard,
) -> Played:  # fmt: skip
    """As `play` does with `OnPolicy`: as many uniform rounds that count as 1/K, the same oracle and exploration."""
    player = _Sighted(environment.problem, explore, models, schedule or SquareRoot(), seed)
    return follow(
        environment, player.turn, lambda: test_policy(environment, player.greedy), rounds, batch, advance
    )


class _Sighted:
    """Algorithm 2 with the reward itself where it has the decoded reward; it plays, and has no other use."""

    def __init__(self, problem: Problem, explore: int, models: Models, schedule: Schedule, seed: int) -> None:
        self._K = problem.actions
        self._explore = explore
        self._schedule = schedule
        self._device = models.device
        self._draws = generator(seed, "draws", models.device)
        self._oracle = models.oracle(problem, generator(seed, "training", models.device))
        self._explored: list[tuple[Tensor, Tensor, Tensor]] = []
        self._played = 0

    def turn(self, arrival: Arrival) -> tuple[Tensor, Tensor]:
        exploring = self._played < self._explore
        contexts = arrival.contexts.to(self._device)
        probabilities = self._probabilities(contexts, exploring)
        actions = exploration.draw(probabilities, torch.rand(len(contexts), generator=self._draws, device=self._device))
        rewards = scored(arrival.react(actions.to(arrival.contexts.device))[1])
        self._played += len(contexts)
        seen = (contexts, actions, rewards.to(self._device))
        if not exploring:
            self._oracle.update(*seen)
        else:
            self._explored.append(seen)
            if self._played >= self._explore:
                every = [torch.cat(column) for column in zip(*self._explored, strict=True)]
                self._oracle.warm_up(every[0], every[1], every[2])
        return torch.full_like(rewards, 1 / self._K) if exploring else rewards, torch.full_like(rewards, torch.nan)

    def greedy(self, contexts: Tensor) -> Tensor:
        return self._oracle.predict(contexts.to(self._device)).argmax(-1).to(contexts.device)

    def _probabilities(self, contexts: Tensor, exploring: bool) -> Tensor:
        n = len(contexts)
        if exploring:
            return exploration.uniform(n, self._K, self._device)
        t = torch.arange(self._played + 1, self._played + n + 1, device=self._device)
        return exploration.inverse_gap(self._oracle.predict(contexts), self._schedule.gamma(t, self._K)[:, None])
