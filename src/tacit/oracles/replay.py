"""The rounds an oracle learns from again: a fixed number of them, the oldest leaving first."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from tacit.encoders.base import Space
from tacit.errors import CorruptFileError


class Replay:
    """A ring of (context, action, decoded reward) held on one device; its size never changes."""

    def __init__(self, capacity: int, space: Space, device: torch.device) -> None:
        self._space = space
        self._capacity = capacity
        self._device = device
        self._columns: tuple[Tensor, Tensor, Tensor] | None = None
        self._seen = 0

    def __len__(self) -> int:
        return min(self._seen, self._capacity)

    def add(self, contexts: Tensor, actions: Tensor, decoded: Tensor) -> None:
        rows = (contexts[-self._capacity :], actions[-self._capacity :], decoded[-self._capacity :])
        if self._columns is None:
            contexts_column, actions_column, decoded_column = (
                torch.zeros((self._capacity, *row.shape[1:]), dtype=row.dtype, device=self._device) for row in rows
            )
            self._columns = contexts_column, actions_column, decoded_column
        count = len(rows[0])
        where = torch.arange(self._seen, self._seen + count, device=self._device) % self._capacity
        held, taken, rewards = self._columns
        held, fresh = self._space.alike([held, rows[0]])
        rows = (fresh, *rows[1:])
        # The first contexts may have been whole numbers by chance.
        self._columns = held.to(torch.promote_types(held.dtype, fresh.dtype)), taken, rewards
        for column, row in zip(self._columns, rows, strict=True):
            column[where] = row
        self._seen += count

    def sample(self, count: int, source: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """`count` rounds drawn with replacement."""
        assert self._columns is not None
        rows = torch.randint(len(self), (count,), generator=source, device=source.device).to(self._device)
        contexts, actions, decoded = self._columns
        return contexts[rows], actions[rows], decoded[rows]

    def tensors(self) -> dict[str, Tensor]:
        seen = {"seen": torch.tensor(self._seen)}
        if self._columns is None:
            return seen
        names = ("contexts", "actions", "decoded")
        return seen | {name: column[: len(self)] for name, column in zip(names, self._columns, strict=True)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        self._columns, self._seen = None, 0
        seen = int(tensors["seen"])
        if seen:
            self.add(*(tensors[name].to(self._device) for name in ("contexts", "actions", "decoded")))
        if self._seen != min(seen, self._capacity):
            raise CorruptFileError(f"{self._seen} rounds to learn from again were saved, after {seen} rounds")
        # The ring goes on where it stood: rows keep their places, and so does the next one to be overwritten.
        self._seen = seen
