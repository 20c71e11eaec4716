"""The policy with the most decoded reward on a log: what Algorithm 1 exploits.

Maximises sum_i pi(a_i | x_i) r_i over a class of policies. Where the actions of the log were not equally likely, r_i
is the decoded reward over the probability of its action, up to a constant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor

from tacit.encoders.base import Encoder
from tacit.errors import CorruptFileError, NotFittedError

NOTHING_CHOSEN = "no policy was chosen yet; call maximise with decoded rounds first"


class PolicyOracle(ABC):
    """Picks a policy, and then scores actions; the highest score is the policy's choice."""

    @abstractmethod
    def maximise(
        self, contexts: Tensor, actions: Tensor, decoded: Tensor, encoder: Encoder | None = None
    ) -> None:
        """Choose the policy from rounds (n, ...), (n,), (n,); starts afresh.

        `encoder` has learned to read contexts already, and may be started from.
        """

    @abstractmethod
    def scores(self, contexts: Tensor) -> Tensor:
        """(n, K): the highest of each row is the action chosen. Before a policy was: NotFittedError."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All that was learned, for saving; learning on may change them."""

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `tensors` gave."""


class FinitePolicies(PolicyOracle):
    """The greedy policies pi_f of a finite class F (|F|, contexts, K), compared one by one."""

    def __init__(self, f: Tensor) -> None:
        self._f = f
        self._chosen: int | None = None

    def maximise(
        self, contexts: Tensor, actions: Tensor, decoded: Tensor, encoder: Encoder | None = None
    ) -> None:
        _, X, K = self._f.shape
        totals = torch.zeros(X * K, dtype=torch.float64, device=decoded.device)
        totals.index_add_(0, contexts.long() * K + actions, decoded.double())
        choices = self._f.argmax(-1)
        values = totals.view(X, K).expand(len(choices), X, K).gather(2, choices[..., None]).sum((1, 2))
        self._chosen = int(values.argmax())

    def scores(self, contexts: Tensor) -> Tensor:
        if self._chosen is None:
            raise NotFittedError(NOTHING_CHOSEN)
        return self._f[self._chosen, contexts.long()]

    def tensors(self) -> dict[str, Tensor]:
        return {} if self._chosen is None else {"chosen": torch.tensor(self._chosen)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        if not tensors:
            self._chosen = None
            return
        chosen = int(tensors["chosen"])
        if not 0 <= chosen < len(self._f):
            raise CorruptFileError(f"the saved policy is number {chosen} of a class of {len(self._f)}")
        self._chosen = chosen
