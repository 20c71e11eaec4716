"""The policy with the most decoded reward on a log: what Algorithm 1 exploits.

Maximises sum_i pi(a_i | x_i) r_i over a class of policies; every action of the log was equally likely.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor

from tacit.errors import CorruptFileError


class PolicyOracle(ABC):
    """Picks a policy once, and then scores actions; the highest score is the policy's choice."""

    @abstractmethod
    def maximise(self, contexts: Tensor, actions: Tensor, decoded: Tensor) -> None:
        """Choose the policy from rounds (n, ...), (n,), (n,)."""

    @abstractmethod
    def scores(self, contexts: Tensor) -> Tensor:
        """(n, K): the highest of each row is the action chosen."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All that was learned, for saving."""

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `tensors` gave."""


class FinitePolicies(PolicyOracle):
    """The greedy policies pi_f of a finite class F (|F|, contexts, K), compared one by one."""

    def __init__(self, f: Tensor) -> None:
        self._f = f
        self._chosen = 0

    def maximise(self, contexts: Tensor, actions: Tensor, decoded: Tensor) -> None:
        _, X, K = self._f.shape
        totals = torch.zeros(X * K, dtype=torch.float64, device=decoded.device)
        totals.index_add_(0, contexts * K + actions, decoded.double())
        choices = self._f.argmax(-1)
        values = totals.view(X, K).expand(len(choices), X, K).gather(2, choices[..., None]).sum((1, 2))
        self._chosen = int(values.argmax())

    def scores(self, contexts: Tensor) -> Tensor:
        return self._f[self._chosen, contexts]

    def tensors(self) -> dict[str, Tensor]:
        return {"chosen": torch.tensor(self._chosen)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        chosen = int(tensors["chosen"])
        if not 0 <= chosen < len(self._f):
            raise CorruptFileError(f"the saved policy is number {chosen} of a class of {len(self._f)}")
        self._chosen = chosen
