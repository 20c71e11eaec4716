"""Rows of numbers, each column on its own scale."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tacit.encoders.base import WIDTH, Encoder, Space
from tacit.errors import InvalidInputError
from tacit.interactions import check_finite, check_positive_count, check_size

LARGEST = 1e30  # the squares of larger numbers overflow; what is larger stands for a missing value
FARTHEST = 100.0  # spreads from the mean: what is farther counts as this far, lest its gradient drown the others'


@dataclass(frozen=True)
class Table(Space):
    """`columns` numbers per value, of any scale."""

    columns: int

    def __post_init__(self) -> None:
        check_positive_count(self.columns, "columns")

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.columns,)

    def check(self, values: Tensor, name: str) -> None:
        self.check_shape(values, name)
        if values.is_complex():
            raise InvalidInputError(name, f"expected real numbers, got {values.dtype}")

    def check_range(self, values: Tensor, name: str) -> None:
        check_finite(values, name)
        check_size(values, LARGEST, name)

    def encoder(self) -> Encoder:
        return TableEncoder(self.columns)

    @property
    def noise_width(self) -> int:
        return 0

    def augment(self, values: Tensor, noise: Tensor) -> Tensor:
        """As it was: which changes leave a row's meaning alone is not known."""
        return values


class TableEncoder(Encoder):
    """Columns brought to mean 0 and spread 1, then two layers."""

    centre: Tensor
    spread: Tensor

    def __init__(self, columns: int) -> None:
        super().__init__()
        # In double precision: the differences between large numbers, such as times in seconds, are lost in single.
        self.register_buffer("centre", torch.zeros(columns, dtype=torch.float64))
        self.register_buffer("spread", torch.ones(columns, dtype=torch.float64))
        self.layers = nn.Sequential(nn.Linear(columns, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())

    def prepare(self, values: Tensor) -> None:
        columns = values.double()
        spread = columns.std(0, unbiased=False)
        self.centre.copy_(columns.mean(0))
        # The spread of equal numbers can come out as rounding, which would blow up any other number.
        constant = (columns == columns[0]).all(0) | (spread == 0)
        self.spread.copy_(torch.where(constant, 1.0, spread))

    def forward(self, values: Tensor) -> Tensor:
        scaled = ((values.double() - self.centre) / self.spread).clamp(-FARTHEST, FARTHEST)
        encoded: Tensor = self.layers(scaled.float())
        return encoded
