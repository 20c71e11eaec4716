"""What an inverse model is: which action was taken, given context and feedback?"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from tacit.interactions import Interactions

# A model that has learned nothing passes this with probability 0.1 %.
SIGNIFICANCE = 3.0


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
        """False for a loss that is not finite, too."""
        return math.isfinite(self.loss) and self.gain > SIGNIFICANCE * self.error

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
        """Learn from uniformly drawn rounds; starts afresh."""

    @abstractmethod
    def posterior(self, contexts: Tensor, feedback: Tensor) -> Tensor:
        """h(x, y): (n, K), rows sum to 1; changes nothing."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All that was learned, for saving."""

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `tensors` gave."""
