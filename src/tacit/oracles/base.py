"""What a regression oracle is: the expected decoded reward of every action, learned online."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from torch import Tensor

from tacit.encoders.base import Encoder


class Oracle(ABC):
    """AlgSq in the paper: predicts, then sees the decoded reward of the action taken."""

    @abstractmethod
    def predict(self, contexts: Tensor) -> Tensor:
        """f(x, .): (n, K); changes nothing, and answers before anything was learned."""

    @abstractmethod
    def update(self, contexts: Tensor, actions: Tensor, decoded: Tensor) -> None:
        """Learn from decoded rewards (n,) in [0, 1] of the actions taken (n,)."""

    @abstractmethod
    def warm_up(
        self, contexts: Tensor, actions: Tensor, decoded: Tensor, encoder: Encoder | None = None
    ) -> None:
        """Learn once from the exploration rounds, decoded, before acting; may pass.

        `encoder` has learned to read contexts already, and may be started from.
        """

    @abstractmethod
    def relearn(self, contexts: Tensor, actions: Tensor, decoded: Tensor) -> None:
        """Put these rounds, decoded better than before, in the place of all that were learned."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All that was learned, for saving; learning on may change them."""

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `tensors` gave."""
