"""What an inverse model is: which action was taken, given context and feedback?"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from tacit.encoders.base import Encoder
from tacit.errors import InvalidInputError
from tacit.interactions import Interactions, check_interactions

# With both, a model that has learned nothing passes about once in a hundred times: the rounds that it is compared on
# also chose it among its likes. The standard error of fewer rounds is a guess itself.
SIGNIFICANCE = 3.0
FEWEST = 30

ROUNDING = 0.01  # relative, since probabilities may be small: a logged 0.333 is a third


@dataclass(frozen=True)
class Fit:
    """How well an inverse model tells the actions apart, on `rounds` rounds it was not fitted on.

    `gain` is the fall of the mean loss below that of a model which knows the probabilities that actions were drawn
    from and answers with those, 1/K where they are uniform; `error` is its standard error. `worth` is how many uniform
    rounds explore as much as these; infinite says as many as there are.
    A finite class is compared on the rounds it was chosen on (`held_out` False): with log|H| far below the number
    of rounds, that flatters little.
    """

    loss: float
    chance: float
    error: float
    rounds: int
    held_out: bool
    worth: float = math.inf

    @property
    def gain(self) -> float:
        return self.chance - self.loss

    @property
    def better_than_chance(self) -> bool:
        """False for a loss that is not finite, and for less than FEWEST uniform rounds, too."""
        enough = min(self.rounds, self.worth) >= FEWEST
        return math.isfinite(self.loss) and enough and self.gain > SIGNIFICANCE * self.error

    def __str__(self) -> str:
        where = "held-out" if self.held_out else "fitted"
        worth = f", worth {self.worth:.1f} uniform ones," if self.worth < self.rounds else ""
        return (
            f"loss {self.loss:.4f} on {self.rounds} {where} rounds{worth} against {self.chance:.4f} for chance "
            f"(gain {self.gain:.4f}, standard error {self.error:.4f})"
        )


class InverseModel(ABC):
    """P(action | context, feedback) when actions are drawn uniformly: h in the paper."""

    @abstractmethod
    def fit(self, rounds: Interactions, test: Interactions | None = None) -> Fit:
        """Learn from rounds drawn with any probabilities; starts afresh.

        What it says of its quality is measured on `test`; without it, on some rounds that it keeps back.

        A round's action was drawn from p(. | x), so that its posterior is p_a h_a / sum_b p_b h_b. h is fitted
        through this, without weights: a round whose p leaves little to chance hardly depends on h and says little.
        """

    @abstractmethod
    def posterior(self, contexts: Tensor, feedback: Tensor) -> Tensor:
        """h(x, y): (n, K), rows sum to 1; changes nothing. Before the first fit there is none: NotFittedError."""

    @property
    @abstractmethod
    def encoders(self) -> tuple[Encoder, Encoder] | None:
        """What it learned to read contexts and feedback with, for others to start from; None where there is nothing."""

    @property
    def context_encoder(self) -> Encoder | None:
        """The first of them."""
        return None if self.encoders is None else self.encoders[0]

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All that was learned, for saving; nothing before the first fit. Learning on may change them."""

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `tensors` gave."""


def check_rounds(rounds: Interactions, actions: int) -> None:
    """Refuse rounds that cannot have happened, or were not drawn from `actions` actions."""
    check_interactions(rounds)
    if rounds.action_count != actions:
        raise InvalidInputError(
            "probabilities", f"expected one column for each of {actions} actions, got {rounds.action_count}"
        )


def is_uniform(probabilities: Tensor) -> bool:
    return bool(((probabilities.shape[1] * probabilities - 1).abs() <= ROUNDING).all())


def leanings(probabilities: Tensor) -> Tensor:
    """log p (n, K) up to a constant per round: what p adds to the logits of h. Exactly 0 where p is uniform."""
    return (probabilities / probabilities.amax(-1, keepdim=True)).log().float()


def worth(probabilities: Tensor) -> float:
    """How many uniform rounds leave as much to chance as these (n, K); exactly n where p is uniform.

    Counted is how often an action other than the likeliest is to be expected.
    """
    K = probabilities.shape[1]
    lost = (probabilities.amax(1) - 1 / K) / (1 - 1 / K)
    return len(lost) - float(lost.double().sum())
