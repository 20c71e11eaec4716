"""The rounds that were acted on, with the reward that was decoded from each: to be decoded again, better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

import torch
from torch import Tensor

from tacit.encoders import Problem
from tacit.interactions import Interactions

CAPACITY = 100_000  # as many as an oracle replays


class Memory:
    """All uniform rounds it was begun with, and the latest CAPACITY of the others."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._batches: list[tuple[Interactions, Tensor]] = []
        self._uniform = 0
        self._kept = 0

    def __len__(self) -> int:
        return self._kept

    def begin(self, rounds: Interactions, decoded: Tensor) -> None:
        """Hold these uniform rounds, for good, and no others."""
        self._batches = [(rounds, decoded)]
        self._uniform = self._kept = len(rounds)

    def add(self, rounds: Interactions, decoded: Tensor) -> None:
        # The caller may use the memory of the feedback again; the contexts are the decision's own.
        self._batches.append((replace(rounds, feedback=rounds.feedback.clone()), decoded))
        self._kept += len(rounds)
        if self._kept > self._uniform + 2 * CAPACITY:
            rounds, decoded = self.rounds()
            wanted = torch.arange(len(decoded), device=decoded.device)
            wanted = torch.cat([wanted[: self._uniform], wanted[self._uniform :][-CAPACITY:]])
            self._batches = [(rounds[wanted], decoded[wanted])]
            self._kept = len(wanted)

    def rounds(self) -> tuple[Interactions, Tensor]:
        """All of them, and what was decoded (n,); the uniform ones first."""
        batches, decoded = zip(*self._batches, strict=True)
        contexts = self._problem.context.alike([batch.contexts for batch in batches])
        feedback = self._problem.feedback.alike([batch.feedback for batch in batches])
        alike = [
            replace(batch, contexts=x, feedback=y) for batch, x, y in zip(batches, contexts, feedback, strict=True)
        ]
        whole = Interactions.concatenate(alike), torch.cat(decoded)
        self._batches = [whole]
        return whole

    def redecode(self, decoded: Tensor) -> None:
        """Put new decoded rewards (n,) in the place of the old ones."""
        rounds, _ = self.rounds()
        self._batches = [(rounds, decoded)]

    def tensors(self) -> dict[str, Tensor]:
        if not self._batches:
            return {}
        rounds, decoded = self.rounds()
        columns = {field.name: getattr(rounds, field.name) for field in fields(rounds)}
        return columns | {"decoded": decoded, "uniform": torch.tensor(self._uniform)}

    def restore(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        if not tensors:
            self._batches, self._uniform, self._kept = [], 0, 0
            return
        rounds = Interactions(*(tensors[field.name].to(device) for field in fields(Interactions)))
        self._batches = [(rounds, tensors["decoded"].to(device))]
        self._uniform, self._kept = int(tensors["uniform"]), len(rounds)
