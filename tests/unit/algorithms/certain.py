"""A world in which the best action is always rewarded and no other ever is, and learners of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import tacit
from tacit.algorithms import TwoView
from tacit.environments.finite import FiniteEnvironment, FiniteInstance, function_classes
from tacit.inverse import FiniteReward
from tests import worlds

EXPLORE = 400
EVERY = torch.cartesian_prod(torch.arange(3), torch.arange(3)).unbind(1)
CERTAIN = worlds.certain()
TRUTH = CERTAIN.phi[EVERY]
ALWAYS_GOOD, TURNED = torch.ones(3, 3).double(), 1 - CERTAIN.phi


def classes(instance: FiniteInstance = CERTAIN) -> tacit.FiniteClasses:
    """The truth among decoys, the two worst readings of feedback first."""
    made = function_classes(instance, torch.Generator().manual_seed(5), rewards=8, decoders=16)
    return tacit.FiniteClasses(made.f, torch.cat([torch.stack([ALWAYS_GOOD, TURNED]), made.phi]))


def learner(instance: FiniteInstance = CERTAIN, **settings: Any) -> tacit.TwoView:
    return worlds.two_view(
        FiniteEnvironment(instance, 0), classes(instance), **{"explore": EXPLORE, **settings}
    )  # fmt: skip


def play(
    acting: tacit.Learner, rounds: int, instance: FiniteInstance = CERTAIN, seed: int = 0, batch: int = 50
) -> Tensor:
    return worlds.play(acting, FiniteEnvironment(instance, seed), rounds, batch)


def unsure(acting: TwoView, share: float = 0.8) -> None:
    """Let h believe, from now on, that the best action is rewarded in that share of rounds only."""
    f, phi = acting._inverse._fitted
    acting._inverse._fitted = share * f + (1 - share) / 3 * (1 - f), phi


def started(rounds: int = EXPLORE, **settings: Any) -> tacit.TwoView:
    """One that has left exploration, with an h that is not as sure as it might be."""
    acting = learner(**settings)
    play(acting, rounds)
    assert not acting.exploring
    unsure(acting)
    return acting


def fixed(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    """Let one refinement after the other come to these phi of the class, and later ones to the last."""
    left = list(numbers)

    def fit(self: FiniteReward, *_: object) -> None:
        self._chosen = left.pop(0) if len(left) > 1 else left[0]

    monkeypatch.setattr(FiniteReward, "fit", fit)


UNSURE = [0.0, 0.7]  # what that h decodes: (0.8 - 1/3) / (2/3)


def numbers_of(decoded: Tensor) -> list[float]:
    """The different ones."""
    return sorted({round(number, 5) for number in decoded.tolist()})


def decoded_by_h(acting: TwoView, rounds: tacit.Interactions) -> Tensor:
    return acting.decoder.decode(acting._inverse.posterior(rounds.contexts, rounds.feedback), rounds.actions)
