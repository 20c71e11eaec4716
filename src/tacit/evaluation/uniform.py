"""Uniform choice, only to be compared with: what knowing nothing gets."""

from __future__ import annotations

import torch
from torch import Tensor

from tacit import exploration
from tacit.environments import Arrival, Environment
from tacit.evaluation.progressive import Advance, Played, follow, scored, test_policy, unheard
from tacit.seeding import generator


def play_uniform(
    environment: Environment, rounds: int, batch: int, *, seed: int = 0, advance: Advance = unheard
) -> Played:
    """Every action equally likely, in every round and on the held-out contexts; rewards as they were, not 1/K."""
    draws = generator(seed, "draws")
    K = environment.problem.actions

    def choose(contexts: Tensor) -> Tensor:
        actions = exploration.draw(exploration.uniform(len(contexts), K), torch.rand(len(contexts), generator=draws))
        return actions.to(contexts.device)

    def turn(arrival: Arrival) -> tuple[Tensor, Tensor]:
        rewards = scored(arrival.react(choose(arrival.contexts))[1])
        return rewards, torch.full_like(rewards, torch.nan)

    return follow(environment, turn, lambda: test_policy(environment, choose), rounds, batch, advance)
