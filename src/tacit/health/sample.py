"""The rounds that health looks at: some of the uniform ones, spread over all time, and the latest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from tacit.errors import CorruptFileError
from tacit.interactions import PROBABILITY_TOLERANCE, Interactions

UNIFORM = 4_000
LATEST = 2_000

# 2^64 over the golden ratio, as a signed number: its multiples, wrapped, are spread evenly however many there are.
GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)


@dataclass(frozen=True, eq=False)
class Kept:
    """n rounds, whether a reward was decoded from each as it came (n,), and the number of each in time (n,)."""

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

    Rounds are only sorted out when enough have gathered, so adding some costs next to nothing.
    """

    def __init__(self) -> None:
        self.seen = 0
        self._kept: Kept | None = None
        self._new: list[tuple[Interactions, Tensor]] = []
        self._waiting = 0

    def add(self, rounds: Interactions, decoded: Tensor) -> None:
        """Take in rounds and their decoded rewards (n,), NaN where there was no decoder yet."""
        if len(rounds) <= LATEST:  # else they are sorted out at once, which copies
            # The caller may use the memory of the feedback again; the contexts are the decision's own.
            rounds = replace(rounds, feedback=rounds.feedback.clone())
        self._new.append((rounds, decoded))
        self.seen += len(rounds)
        self._waiting += len(rounds)
        if self._waiting > LATEST:
            self._sort_out()

    def kept(self) -> Kept | None:
        """The rounds, in the order they were learned; None before the first."""
        if self._new:
            self._sort_out()
        return self._kept

    def tensors(self) -> dict[str, Tensor]:
        kept = self.kept()
        if kept is None:
            return {}
        columns = {field.name: getattr(kept.rounds, field.name) for field in fields(kept.rounds)}
        return columns | {"decoded": kept.decoded, "when": kept.when, "seen": torch.tensor(self.seen)}

    @classmethod
    def restored(cls, tensors: Mapping[str, Tensor], device: torch.device) -> Sample:
        """The sample that gave these tensors."""
        sample = cls()
        if tensors:
            rounds = Interactions(**{field.name: tensors[field.name] for field in fields(Interactions)})
            sample._kept = Kept(rounds, tensors["decoded"], tensors["when"]).to(device)
            sample.seen = int(tensors["seen"])
            lengths = {name: len(column) for name, column in tensors.items() if name != "seen"}
            if len(set(lengths.values())) != 1 or int(sample._kept.when[-1]) >= sample.seen:
                raise CorruptFileError(f"the rounds kept for health do not fit together: {lengths}, {sample.seen} seen")
        return sample

    def _sort_out(self) -> None:
        batches = [rounds for rounds, _ in self._new]
        rounds = batches[0] if len(batches) == 1 else Interactions.concatenate(batches)
        decoded = torch.cat([each for _, each in self._new]).isfinite()
        when = torch.arange(self.seen - self._waiting, self.seen, device=decoded.device)
        new = _trimmed(Kept(rounds, decoded, when), self.seen)
        self._kept = new if self._kept is None else _trimmed(_joined(self._kept, new), self.seen)
        self._new, self._waiting = [], 0


def _joined(one: Kept, other: Kept) -> Kept:
    rounds = Interactions.concatenate([one.rounds, other.rounds])
    return Kept(rounds, torch.cat([one.decoded, other.decoded]), torch.cat([one.when, other.when]))


def _trimmed(kept: Kept, seen: int) -> Kept:
    """A copy of the rounds that are wanted after `seen` rounds."""
    wanted = kept.when >= seen - LATEST
    # The lowest keys of all that was seen are among the lowest of any part of it, so none is lost on the way.
    rows = kept.uniform.nonzero()[:, 0]
    wanted[rows[(kept.when[rows] * GOLDEN).argsort()[:UNIFORM]]] = True
    return kept[wanted.nonzero()[:, 0]]
