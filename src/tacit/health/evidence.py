"""What the checks are made from: posteriors that were not learned from the rounds they judge, and segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from tacit.decoder import Decoder
from tacit.encoders import Category, Problem, Table
from tacit.health.sample import LATEST, Kept, Sample
from tacit.inverse import Fit, InverseModel
from tacit.seeding import generator

FEWEST = 300  # uniform rounds, and PER_ACTION for each action, below which nothing is asked
PER_ACTION = 50
SEGMENT = 30  # uniform rounds per action in a segment that is looked at by itself
PARTNERS = 8  # other rounds' feedback tried with a context
CHUNK = 4_000
MOST_COLUMNS = 32  # of a table that are looked at one by one
FEW_VALUES = 6  # in a column, for each to be a segment


@dataclass(frozen=True, eq=False)
class Subject:
    """The learner to be judged, as far as its health needs it."""

    problem: Problem
    decoder: Decoder
    fit: Fit | None
    inverse: InverseModel
    fresh: Callable[[torch.Generator], InverseModel]
    predict: Callable[[Tensor], Tensor] | None  # (n, K), the highest is the greedy action; None while it explores
    seed: int


class Evidence:
    """Rounds and what is worked out from them, once, when a check first asks."""

    def __init__(self, subject: Subject, sample: Sample, kept: Kept) -> None:
        self.subject = subject
        self.kept = kept
        self.seen = sample.seen
        self.uniform = kept[kept.uniform.nonzero()[:, 0]]
        self.latest = kept[(kept.when >= sample.seen - LATEST).nonzero()[:, 0]]
        # Rounds that the decoder in use was not learned from.
        self.acted = self.latest[self.latest.decoded.nonzero()[:, 0]]
        self.K = subject.problem.actions
        self._source = generator(subject.seed, "health")

    @property
    def fewest(self) -> int:
        return max(FEWEST, PER_ACTION * self.K)

    @property
    def enough(self) -> bool:
        return len(self.uniform) >= self.fewest

    @cached_property
    def halves(self) -> tuple[tuple[Tensor, InverseModel], ...]:
        """Two random halves of the uniform rounds, each with an inverse model learned from the other."""
        order = torch.randperm(len(self.uniform), generator=self._source).to(self.uniform.when.device)
        parts = order[: len(order) // 2].sort()[0], order[len(order) // 2 :].sort()[0]
        models: list[InverseModel] = []
        for other in reversed(parts):
            model = self.subject.fresh(generator(self.subject.seed, f"health {len(models)}", other.device))
            model.fit(self.uniform.rounds[other])
            models.append(model)
        return tuple(zip(parts, models, strict=True))

    @cached_property
    def honest(self) -> Tensor:
        """Posteriors (n, K) of the uniform rounds, each by the model that did not learn from it."""
        h = torch.empty(len(self.uniform), self.K, dtype=torch.float64, device=self.uniform.when.device)
        for rows, model in self.halves:
            part = self.uniform.rounds[rows]
            h[rows] = posteriors(model, part.contexts, part.feedback).to(h)
        return h

    def own(self, kept: Kept) -> Tensor:
        """Posteriors (n, K) of these rounds by the learner's own inverse model."""
        return posteriors(self.subject.inverse, kept.rounds.contexts, kept.rounds.feedback)

    def greedy(self, kept: Kept) -> Tensor:
        """What the learner would do in these rounds (n,)."""
        assert self.subject.predict is not None
        parts = kept.rounds.contexts.split(CHUNK)
        return torch.cat([self.subject.predict(part).argmax(-1) for part in parts])

    @cached_property
    def segments(self) -> list[tuple[str, Tensor]]:
        """Parts of the uniform rounds, large enough and with enough left beside them: their names and rows."""
        least = SEGMENT * self.K
        found = [(name, where.nonzero()[:, 0]) for name, where in self._parts()]
        return [(name, rows) for name, rows in found if least <= len(rows) <= len(self.uniform) - least]

    def swapped(self, rows: Tensor, model: InverseModel, partners: Tensor) -> Tensor:
        """Posteriors (rows, PARTNERS, K) of contexts with the feedback of their partners (rows, PARTNERS)."""
        rounds = self.uniform.rounds
        contexts = rounds.contexts[rows].repeat_interleave(partners.shape[1], 0)
        h = posteriors(model, contexts, rounds.feedback[partners.flatten()])
        return h.view(*partners.shape, self.K)

    def pick(self, candidates: Tensor, count: int) -> Tensor:
        """PARTNERS of the candidates for each of `count` rounds: (count, PARTNERS)."""
        numbers = torch.randint(len(candidates), (count, PARTNERS), generator=self._source)
        return candidates[numbers.to(candidates.device)]

    def _parts(self) -> Iterator[tuple[str, Tensor]]:
        contexts, space = self.uniform.rounds.contexts, self.subject.problem.context
        if isinstance(space, Category):
            for value in contexts.unique().tolist():
                yield f"context {value}", contexts == value
            return
        if isinstance(space, Table) and space.columns <= MOST_COLUMNS:
            for column in range(space.columns):
                yield from _halves(f"column {column}", contexts[:, column])
        else:
            yield from _halves("mean of the context", contexts.flatten(1).double().mean(1))
        if self.subject.predict is not None:
            greedy = self.greedy(self.uniform)
            for action in range(self.K):
                yield f"contexts where action {action} seems best", greedy == action


def posteriors(model: InverseModel, contexts: Tensor, feedback: Tensor) -> Tensor:
    """h (n, K), in parts that fit into memory."""
    parts = zip(contexts.split(CHUNK), feedback.split(CHUNK), strict=True)
    return torch.cat([model.posterior(*part).double() for part in parts])


def _halves(name: str, values: Tensor) -> Iterator[tuple[str, Tensor]]:
    found = values.unique()
    if len(found) <= FEW_VALUES:
        yield from ((f"{name} = {value:g}", values == value) for value in found.tolist())
        return
    middle = float(values.double().median())
    yield f"{name} up to {middle:.3g}", values <= middle
    yield f"{name} above {middle:.3g}", values > middle
