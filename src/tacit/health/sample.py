"""The rounds that health looks at: some of the uniform ones, spread over all time, and the latest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from tacit.interactions import PROBABILITY_TOLERANCE, Interactions

UNIFORM = 4_000
LATEST = 2_000

# 2^64 over the golden ratio, as a signed number: its multiples, wrapped, are spread evenly however many there are.
GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)


@dataclass(frozen=True, eq=False)
class Kept:
    """n rounds, the decoded reward of each (n,), NaN where there was none, and which in order it was learned (n,)."""

    rounds: Interactions
    decoded: Tensor
    when: Tensor

    def __len__(self) -> int:
        return len(self.when)

    def __getitem__(self, rows: slice | Tensor) -> Kept:
        return Kept(self.rounds[rows], self.decoded[rows], self.when[rows])

    @property
    def uniform(self) -> Tensor:
        """Which rounds (n,) were drawn uniformly."""
        p = self.rounds.probabilities
        return ((p - 1 / p.shape[1]).abs() <= PROBABILITY_TOLERANCE).all(1)

    def to(self, device: torch.device | str) -> Kept:
        return Kept(self.rounds.to(device), self.decoded.to(device), self.when.to(device))


class Sample:
    """At most UNIFORM uniform rounds and the LATEST of all; which ones depends on their order alone.

    Rounds are only sorted out when enough have gathered, so adding costs next to nothing.
    """

    def __init__(self) -> None:
        self.seen = 0
        self._batches: list[Kept] = []
        self._waiting = 0

    def add(self, rounds: Interactions, decoded: Tensor) -> None:
        when = torch.arange(self.seen, self.seen + len(rounds), device=rounds.actions.device)
        # The caller may use the memory of the feedback again; the contexts are the decision's own.
        self._batches.append(Kept(replace(rounds, feedback=rounds.feedback.clone()), decoded.detach().clone(), when))
        self.seen += len(rounds)
        self._waiting += len(rounds)
        if self._waiting > LATEST:
            self._sort_out()

    def kept(self) -> Kept | None:
        """The rounds, in the order they were learned; None before the first."""
        if self._waiting:
            self._sort_out()
        return self._batches[0] if self._batches else None

    def tensors(self) -> dict[str, Tensor]:
        kept = self.kept()
        if kept is None:
            return {}
        columns = {field.name: getattr(kept.rounds, field.name) for field in fields(kept.rounds)}
        return columns | {"decoded": kept.decoded, "when": kept.when, "seen": torch.tensor(self.seen)}

    def restore(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        self.__init__()  # type: ignore[misc]
        if tensors:
            rounds = Interactions(**{field.name: tensors[field.name] for field in fields(Interactions)})
            self._batches = [Kept(rounds, tensors["decoded"], tensors["when"]).to(device)]
            self.seen = int(tensors["seen"])

    def _sort_out(self) -> None:
        rounds = Interactions.concatenate([batch.rounds for batch in self._batches])
        decoded, when = (torch.cat([getattr(batch, name) for batch in self._batches]) for name in ("decoded", "when"))
        kept = Kept(rounds, decoded, when)
        wanted = when >= self.seen - LATEST
        # The lowest keys of all that was seen are among the lowest of any part of it, so none is lost on the way.
        rows = kept.uniform.nonzero()[:, 0]
        wanted[rows[(when[rows] * GOLDEN).argsort()[:UNIFORM]]] = True
        self._batches, self._waiting = [kept[wanted.nonzero()[:, 0]]], 0
