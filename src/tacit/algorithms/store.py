"""The exploration rounds, kept until the inverse model has learned from them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace

import torch
from torch import Tensor

from tacit.encoders import Problem
from tacit.errors import DecoderWarning, UntrustworthyDecoderError
from tacit.interactions import Interactions

PATIENCE = 1.5  # how much longer exploration gets, whenever the decoder cannot be trusted
LONGEST = 4  # times the rounds asked for: how many are kept meanwhile


class Store:
    """The latest exploration rounds, and when there are enough of them to learn from."""

    def __init__(self, enough: int, problem: Problem, capacity: int | None = None) -> None:
        self._problem = problem
        self._capacity = LONGEST * enough if capacity is None else capacity
        self._due = enough
        self._seen = 0
        self._kept = 0
        self._batches: list[Interactions] = []

    @property
    def due(self) -> bool:
        return self._seen >= self._due

    @property
    def seen(self) -> int:
        """How many there were so far, kept or not."""
        return self._seen

    @contextmanager
    def added(self, rounds: Interactions) -> Iterator[None]:
        """Keep these rounds, unless what is done next fails: their feedback can be given again then."""
        self._add(rounds)
        try:
            yield
        except BaseException:
            self._take_back(len(rounds))
            raise

    def rounds(self) -> Interactions:
        contexts = self._problem.context.alike([batch.contexts for batch in self._batches])
        feedback = self._problem.feedback.alike([batch.feedback for batch in self._batches])
        batches = [
            replace(batch, contexts=x, feedback=y)
            for batch, x, y in zip(self._batches, contexts, feedback, strict=True)
        ]
        return Interactions.concatenate(batches)[slice(-self._capacity, None)]

    def postpone(self, doubt: UntrustworthyDecoderError) -> None:
        """Say that the decoder cannot be trusted, and wait for more rounds."""
        self.wait(PATIENCE)
        # The warning points at the call of `learn`, five calls up.
        warnings.warn(
            f"after {self._seen} uniform rounds: {doubt}. Exploring on, to try again at {self._due} rounds",
            DecoderWarning, stacklevel=6,
        )  # fmt: skip

    def wait(self, factor: float) -> None:
        """There are enough when there are `factor` times as many as now."""
        self._due = math.ceil(factor * self._seen)

    def clear(self) -> None:
        self._batches, self._kept = [], 0

    def tensors(self) -> dict[str, Tensor]:
        progress = {"progress": torch.tensor([self._seen, self._due])}
        if not self._batches:
            return progress
        rounds = self.rounds()
        return progress | {field.name: getattr(rounds, field.name) for field in fields(rounds)}

    def restore(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        self.clear()
        columns = {name: value for name, value in tensors.items() if name != "progress"}
        if columns:
            self._add(Interactions(**columns).to(device))
        self._seen, self._due = (int(number) for number in tensors["progress"])

    def _add(self, rounds: Interactions) -> None:
        # The caller may use the memory of the feedback again; the contexts are the decision's own.
        self._batches.append(replace(rounds, feedback=rounds.feedback.clone()))
        self._seen += len(rounds)
        self._kept += len(rounds)
        if self._kept > 2 * self._capacity:
            self._batches = [self.rounds()]
            self._kept = self._capacity

    def _take_back(self, count: int) -> None:
        last = self._batches.pop()
        before = last[slice(max(len(last) - count, 0))]
        if len(before):
            self._batches.append(before)
        self._seen -= count
        self._kept = sum(map(len, self._batches))
