"""What a context or a feedback looks like, and how it becomes a vector; the only place that knows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor, nn

from tacit.errors import InvalidInputError

# Every encoder ends in a vector of this width.
WIDTH = 64


class Space(ABC):
    """A kind of value: its shape, its encoder, and the small changes that leave its meaning as it was."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of one value."""

    @abstractmethod
    def check(self, values: Tensor, name: str) -> None:
        """Refuse a batch (n, ...) that is not of this kind; looks at shape and type alone."""

    @abstractmethod
    def check_range(self, values: Tensor, name: str) -> None:
        """Refuse numbers that this kind cannot hold; waits for the device."""

    @abstractmethod
    def encoder(self) -> Encoder:
        """A fresh network from values (n, ...) to vectors (n, WIDTH)."""

    @property
    @abstractmethod
    def noise_width(self) -> int:
        """How many uniform random numbers `augment` wants per value; 0 where it changes nothing."""

    @abstractmethod
    def augment(self, values: Tensor, noise: Tensor) -> Tensor:
        """Values that mean the same, moved a little by noise in [0, 1) (n, noise_width)."""

    def alike(self, batches: Sequence[Tensor]) -> list[Tensor]:
        """Batches that mean the same and can be held in one tensor."""
        return list(batches)

    def check_shape(self, values: Tensor, name: str) -> None:
        if tuple(values.shape[1:]) != self.shape or values.ndim == 0:
            expected = ", ".join(["rounds", *map(str, self.shape)])
            raise InvalidInputError(name, f"expected shape ({expected}), got {tuple(values.shape)}")


class Encoder(nn.Module, ABC):
    """From values (n, ...) to vectors (n, WIDTH)."""

    @abstractmethod
    def prepare(self, values: Tensor) -> None:
        """Take the scale of the data, before training."""

    @abstractmethod
    def forward(self, values: Tensor) -> Tensor:
        """Vectors (n, WIDTH)."""
