"""What an inverse model is: which action was taken, given context and feedback?"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from tacit.errors import InvalidInputError
from tacit.interactions import Interactions, check_interactions

# With both, a model that has learned nothing passes about once in a hundred times: the rounds that it is compared on
# also chose it among its likes. The standard error of fewer rounds is a guess itself.
SIGNIFICANCE = 3.0
FEWEST = 30

UNIFORM_TOLERANCE = 0.01  # a logged 0.333 is a third


@dataclass(frozen=True)
class Fit:
    """How well an inverse model tells the actions apart, on `rounds` rounds it was not fitted on.

    `gain` is the fall of the mean loss below that of a model which answers 1/K always, `error` its standard error.
    A finite class is compared on the rounds it was chosen on (`held_out` False): with log|H| far below the number
    of rounds, that flatters little.
    """

    loss: float
    chance: float
    error: float
    rounds: int
    held_out: bool

    @property
    def gain(self) -> float:
        return self.chance - self.loss

    @property
    def better_than_chance(self) -> bool:
        """False for a loss that is not finite, and for fewer than FEWEST rounds, too."""
        return math.isfinite(self.loss) and self.rounds >= FEWEST and self.gain > SIGNIFICANCE * self.error

    def __str__(self) -> str:
        where = "held-out" if self.held_out else "fitted"
        return (
            f"loss {self.loss:.4f} on {self.rounds} {where} rounds against {self.chance:.4f} for chance "
            f"(gain {self.gain:.4f}, standard error {self.error:.4f})"
        )


class InverseModel(ABC):
    """P(action | context, feedback) when actions are drawn uniformly: h in the paper."""

    @abstractmethod
    def fit(self, rounds: Interactions) -> Fit:
        """Learn from uniformly drawn rounds, refusing others; starts afresh."""

    @abstractmethod
    def posterior(self, contexts: Tensor, feedback: Tensor) -> Tensor:
        """h(x, y): (n, K), rows sum to 1; changes nothing. Before the first fit there is none: NotFittedError."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All that was learned, for saving; nothing before the first fit. Learning on may change them."""

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `tensors` gave."""


def check_uniform(rounds: Interactions, actions: int) -> None:
    """Refuse rounds that cannot have happened, or were not drawn uniformly from `actions` actions."""
    check_interactions(rounds)
    if rounds.action_count != actions:
        raise InvalidInputError(
            "probabilities", f"expected one column for each of {actions} actions, got {rounds.action_count}"
        )
    # Relative to 1/K: with a thousand actions, an absolute thousandth would let anything pass.
    if bool(((actions * rounds.probabilities - 1).abs() > UNIFORM_TOLERANCE).any()):
        raise InvalidInputError(
            "probabilities", f"the posterior is learned from uniformly drawn actions only, 1/{actions} everywhere, and "
            "these were drawn by another policy; give the rounds that were drawn uniformly"
        )
