"""One of a known number of values: a user's group, an emoji."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional

from tacit.encoders.base import WIDTH, Encoder, Space
from tacit.errors import InvalidInputError
from tacit.interactions import check_positive_count, check_within


@dataclass(frozen=True)
class Category(Space):
    """An integer in 0..count-1."""

    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", check_positive_count(self.count, "count"))

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    def check(self, values: Tensor, name: str) -> None:
        self.check_shape(values, name)
        if values.is_floating_point() or values.is_complex():
            raise InvalidInputError(name, f"expected integers in 0..{self.count - 1}, got {values.dtype}")

    def check_range(self, values: Tensor, name: str) -> None:
        check_within(values, self.count, name)

    def encoder(self) -> Encoder:
        return CategoryEncoder(self.count)

    @property
    def noise_width(self) -> int:
        return 0

    def augment(self, values: Tensor, noise: Tensor) -> Tensor:
        """As it was: categories have no neighbours."""
        return values


class CategoryEncoder(Encoder):
    """One vector per category."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
        self.layers = nn.Sequential(nn.Linear(count, WIDTH), nn.ReLU())

    def prepare(self, values: Tensor) -> None:
        """Categories have no scale."""

    def forward(self, values: Tensor) -> Tensor:
        encoded: Tensor = self.layers(functional.one_hot(values.long(), self.count).float())
        return encoded
