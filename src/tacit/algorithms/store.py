"""The exploration rounds, kept until the inverse model has learned from them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import fields

import torch
from torch import Tensor

from tacit.errors import DecoderWarning
from tacit.interactions import Interactions
from tacit.inverse import Fit

PATIENCE = 1.5  # how much longer exploration gets, whenever the inverse model is no better than chance
LONGEST = 4  # times the rounds asked for: how many are kept meanwhile


class Store:
    """The latest exploration rounds, and when there are enough of them to learn from."""

    def __init__(self, enough: int) -> None:
        self._capacity = LONGEST * enough
        self._due = enough
        self._seen = 0
        self._batches: list[Interactions] = []

    @property
    def due(self) -> bool:
        return self._seen >= self._due

    def add(self, rounds: Interactions) -> None:
        self._batches.append(rounds)
        self._seen += len(rounds)
        if sum(map(len, self._batches)) > 2 * self._capacity:
            self._batches = [self.rounds()]

    def rounds(self) -> Interactions:
        return Interactions.concatenate(self._batches)[slice(-self._capacity, None)]

    def postpone(self, fit: Fit) -> None:
        """Say that the inverse model knows nothing, and wait for more rounds."""
        self._due = math.ceil(PATIENCE * self._seen)
        warnings.warn(
            f"after {self._seen} uniform rounds the feedback does not tell which action was taken: {fit}. Exploring "
            f"on, to try again at {self._due} rounds. If that does not help, the feedback may not depend on the "
            "reward, or reward 1 may not be the rarer event",
            DecoderWarning, stacklevel=2,
        )  # fmt: skip

    def clear(self) -> None:
        self._batches = []

    def tensors(self) -> dict[str, Tensor]:
        progress = {"progress": torch.tensor([self._seen, self._due])}
        if not self._batches:
            return progress
        rounds = self.rounds()
        return progress | {field.name: getattr(rounds, field.name) for field in fields(rounds)}

    def restore(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        self._seen, self._due = (int(number) for number in tensors["progress"])
        columns = {name: value for name, value in tensors.items() if name != "progress"}
        self._batches = [Interactions(**columns).to(device)] if columns else []
