"""Rounds of a small world whose posterior is found by counting: what each check is tried on, without training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from tacit.decoder import Decoder
from tacit.encoders import Category, Problem
from tacit.exploration import draw
from tacit.health import Sample, Subject
from tacit.interactions import Interactions
from tacit.inverse import Fit, InverseModel

K, CONTEXTS, SIGNS = 4, 6, 4
UNIFORM, LATER = 2_400, 1_200
BEST = torch.tensor([0, 1, 2, 3, 1, 0])
PROBLEM = Problem(K, Category(CONTEXTS), Category(SIGNS + K))


class Counting(InverseModel):
    """How often each action was taken, given context and feedback."""

    def __init__(self) -> None:
        self._counts = torch.zeros(CONTEXTS, SIGNS + K, K, dtype=torch.float64)

    def fit(self, rounds: Interactions, test: Interactions | None = None) -> Fit:
        self._counts.index_put_(
            (rounds.contexts, rounds.feedback, rounds.actions), torch.ones(1, dtype=torch.float64), accumulate=True
        )
        h = self.posterior(rounds.contexts, rounds.feedback)
        loss = (h - functional.one_hot(rounds.actions, K)).square().sum(1)
        return Fit(float(loss.mean()), 1 - 1 / K, float(loss.std()) / len(loss) ** 0.5, len(loss), held_out=False)

    def posterior(self, contexts: Tensor, feedback: Tensor) -> Tensor:
        # As if each action had been seen three times with every feedback: rare feedback tells little.
        counts = self._counts[contexts, feedback] + 3
        return counts / counts.sum(1, keepdim=True)

    @property
    def encoders(self) -> None:
        return None

    def tensors(self) -> dict[str, Tensor]:
        return {"counts": self._counts}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        self._counts = tensors["counts"]


@dataclass(frozen=True, eq=False)
class Seen:
    """Rounds as they happened (n,): time, context, action, hidden reward and the feedback that usually follows."""

    when: Tensor
    contexts: Tensor
    actions: Tensor
    rewards: Tensor
    feedback: Tensor
    source: torch.Generator

    def chance(self) -> Tensor:
        return torch.rand(len(self.when), generator=self.source)

    def opposite(self) -> Tensor:
        """The feedback to the opposite reward."""
        return signs(self.contexts, 1 - self.rewards)

    def anything(self) -> Tensor:
        return (self.chance() * SIGNS).long()


def signs(contexts: Tensor, rewards: Tensor) -> Tensor:
    """Personal signs: 0 and 1 for contexts of even number, 2 and 3, the other way round, for odd ones."""
    return torch.where(contexts % 2 == 0, rewards, 3 - rewards)


Ill = Callable[[Seen], Tensor]


def healthy(seen: Seen) -> Tensor:
    return seen.feedback


def made(
    ill: Ill = healthy, seed: int = 0, f: Tensor | None = None, uniform: int = UNIFORM, later: int = LATER,
    decoder: Decoder | None = None, drawn: float = 0.0, exploring: bool = False,
) -> tuple[Subject, Sample]:  # fmt: skip
    """A learner and its sample after `uniform` rounds and `later` ones that mostly take the best action.

    f (CONTEXTS, K) are the expected rewards; `drawn` is how often the best action was taken for all that the
    probabilities say.
    """
    source = torch.Generator().manual_seed(seed)
    f = 0.95 * functional.one_hot(BEST, K) if f is None else f
    n = uniform + later
    contexts = torch.randint(CONTEXTS, (n,), generator=source)
    acts = (torch.arange(n) >= uniform)[:, None]
    p = torch.where(acts, 0.1 + 0.6 * functional.one_hot(BEST[contexts], K), 1 / K)
    actions = draw(p, torch.rand(n, generator=source))
    actions = torch.where(torch.rand(n, generator=source) < drawn, BEST[contexts], actions)
    rewards = (torch.rand(n, generator=source) < f[contexts, actions]).long()
    seen = Seen(torch.arange(n), contexts, actions, rewards, signs(contexts, rewards), source)
    # One in twenty makes a mistake.
    usual = torch.where(seen.chance() < 0.05, seen.anything(), seen.feedback)
    rounds = Interactions(contexts, actions, p, ill(replace(seen, feedback=usual)))
    return _learned(rounds, uniform, decoder or Decoder.from_assumption(alpha=1, theta=1, K=K), exploring)


def _learned(rounds: Interactions, uniform: int, decoder: Decoder, exploring: bool) -> tuple[Subject, Sample]:
    model = Counting()
    fit = model.fit(rounds[slice(uniform)])
    sample = Sample()
    acted = (torch.arange(len(rounds)) >= uniform) & (not exploring)
    sample.add(rounds, torch.where(acted, 0.5, torch.nan))
    values = None if exploring else lambda contexts: functional.one_hot(BEST[contexts], K).float()
    return Subject(PROBLEM, decoder, fit, model, lambda source: Counting(), values, seed=0), sample
