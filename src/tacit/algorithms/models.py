"""Where a learner's models come from: networks over encoders, or finite classes with exact answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from torch import Tensor

from tacit.encoders import Category, Problem
from tacit.errors import InvalidInputError
from tacit.interactions import check_kind
from tacit.inverse import (
    FiniteInverse,
    FiniteReward,
    InverseModel,
    InverseTraining,
    NetworkInverse,
    NetworkReward,
    RewardModel,
)  # fmt: skip
from tacit.oracles import (
    FinitePolicies,
    NetworkOracle,
    NetworkPolicies,
    Oracle,
    OracleTraining,
    PolicyOracle,
    VovkOracle,
)  # fmt: skip


class Models(ABC):
    """Makes the things an algorithm is built from."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Where they live."""

    @abstractmethod
    def inverse(self, problem: Problem, source: torch.Generator) -> InverseModel:
        """h: which action was taken."""

    @abstractmethod
    def reward(self, problem: Problem, source: torch.Generator) -> RewardModel:
        """phi: whether feedback speaks of reward 1."""

    @abstractmethod
    def oracle(self, problem: Problem, source: torch.Generator) -> Oracle:
        """f: the expected decoded reward of each action, online."""

    @abstractmethod
    def policies(self, problem: Problem, source: torch.Generator) -> PolicyOracle:
        """pi: the policy with the most decoded reward on a log."""


def best_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Networks(Models):
    """Networks over the problem's encoders, on the GPU if there is one."""

    inverse_training: InverseTraining = field(default_factory=InverseTraining)
    oracle_training: OracleTraining = field(default_factory=OracleTraining)
    on: str = field(default_factory=best_device)

    def __post_init__(self) -> None:
        check_kind(self.inverse_training, InverseTraining, "inverse_training")
        check_kind(self.oracle_training, OracleTraining, "oracle_training")
        try:
            torch.device(self.on)  # whether it is here is another question: what is loaded may move elsewhere
        except (RuntimeError, TypeError, ValueError) as error:
            raise InvalidInputError("on", f"expected cpu, cuda or cuda:NUMBER, got {self.on!r}") from error

    @classmethod
    def paper(cls, on: str | None = None) -> Networks:
        """The recipe of the paper's image experiment: COCOB and squared loss, each round learned from once."""
        return cls(
            InverseTraining(
                loss="squared", optimiser="cocob", augment=False, contrast=0, contrast_steps=0, average=0, dropout=0,
                steps=2_100, interval=1, starts=3,
            ),
            OracleTraining(optimiser="cocob", augment=False, replay=0, warm_up=0, average=0),
            on or best_device(),
        )

    @property
    def device(self) -> torch.device:
        return torch.device(self.on)

    def inverse(self, problem: Problem, source: torch.Generator) -> InverseModel:
        return NetworkInverse(
            problem.context, problem.feedback, problem.actions, self.inverse_training, source, self.device
        )

    def reward(self, problem: Problem, source: torch.Generator) -> RewardModel:
        return NetworkReward(problem.context, problem.feedback, self.inverse_training, source, self.device)

    def oracle(self, problem: Problem, source: torch.Generator) -> Oracle:
        return NetworkOracle(problem.context, problem.actions, self.oracle_training, source, self.device)

    def policies(self, problem: Problem, source: torch.Generator) -> PolicyOracle:
        return NetworkPolicies(problem.context, problem.actions, self.oracle_training, source, self.device)


@dataclass(frozen=True, eq=False)
class FiniteClasses(Models):
    """Finite classes F (|F|, contexts, K) and Phi (|Phi|, contexts, feedbacks): the setting of the theorems."""

    f: Tensor
    phi: Tensor

    def __post_init__(self) -> None:
        check_kind(self.f, Tensor, "f")
        check_kind(self.phi, Tensor, "phi")
        if self.f.ndim != 3 or self.phi.ndim != 3 or self.f.shape[1] != self.phi.shape[1]:
            raise InvalidInputError(
                "FiniteClasses", "expected f (|F|, contexts, K) and phi (|Phi|, contexts, feedbacks) over the same "
                f"contexts, got {tuple(self.f.shape)} and {tuple(self.phi.shape)}"
            )

    @property
    def device(self) -> torch.device:
        return self.f.device

    @property
    def problem(self) -> Problem:
        """The problem that these classes speak of."""
        return Problem(self.f.shape[2], Category(self.f.shape[1]), Category(self.phi.shape[2]))

    def inverse(self, problem: Problem, source: torch.Generator) -> InverseModel:
        self._check(problem)
        return FiniteInverse(self.f, self.phi)

    def reward(self, problem: Problem, source: torch.Generator) -> RewardModel:
        self._check(problem)
        return FiniteReward(self.phi)

    def oracle(self, problem: Problem, source: torch.Generator) -> Oracle:
        self._check(problem)
        return VovkOracle(self.f)

    def policies(self, problem: Problem, source: torch.Generator) -> PolicyOracle:
        self._check(problem)
        return FinitePolicies(self.f)

    def _check(self, problem: Problem) -> None:
        if problem != self.problem:
            raise InvalidInputError("models", f"the finite classes describe {self.problem}, the learner {problem}")
