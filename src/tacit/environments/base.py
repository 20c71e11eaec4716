"""What an environment is: it shows contexts, reacts to actions, and keeps the reward to itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor

from tacit.encoders import Problem
from tacit.interactions import HiddenReward


@dataclass(frozen=True, eq=False)
class Arrival:
    """A batch of n contexts that wait for actions; `react(actions)` (n,) gives the feedback and the hidden reward."""

    contexts: Tensor
    react: Callable[[Tensor], tuple[Tensor, HiddenReward]]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Contexts that are never learned from, to score a policy on."""

    contexts: Tensor
    reward: Callable[[Tensor], HiddenReward]


class Environment(ABC):
    """A source of rounds. The same seed gives the same contexts in the same order."""

    @property
    @abstractmethod
    def problem(self) -> Problem:
        """Actions, contexts and feedback."""

    @property
    @abstractmethod
    def horizon(self) -> int | None:
        """How many rounds there are, if each context comes once; None where they never end."""

    @property
    def checked(self) -> bool:
        """Whether all that it can ever show was checked when it was made; if not, every batch is."""
        return False

    @abstractmethod
    def stream(self, rounds: int, batch: int) -> Iterator[Arrival]:
        """`rounds` rounds in batches; the last may be smaller."""

    @abstractmethod
    def held_out(self) -> HeldOut:
        """What a finished policy is scored on."""
