"""Any labelled data set as interaction: the action is a guess at the label, and feedback follows a rule.

The reward is 1 for the right label (with probability `right`) and for a wrong one with probability `wrong`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from tacit.encoders import Category, Problem, Space
from tacit.environments.base import Arrival, Environment, HeldOut
from tacit.errors import InvalidInputError
from tacit.exploration import draw
from tacit.interactions import (
    HiddenReward,
    check_actions,
    check_count,
    check_positive_count,
    check_probabilities,
)  # fmt: skip
from tacit.seeding import generator

TEST_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Labelled:
    """n examples with labels in 0..classes-1."""

    contexts: Tensor
    labels: Tensor
    classes: int

    def __post_init__(self) -> None:
        if len(self.contexts) != len(self.labels) or not len(self.labels):
            raise InvalidInputError(
                "labels", f"expected one per example, got {len(self.labels)} for {len(self.contexts)} examples"
            )
        kind = Category(self.classes)
        kind.check(self.labels, "labels")
        kind.check_range(self.labels, "labels")
        # Labels are used as indices, and an index of bytes would be read as a mask.
        object.__setattr__(self, "labels", self.labels.long())

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: slice | Tensor) -> Labelled:
        return Labelled(self.contexts[rows], self.labels[rows], self.classes)

    def to(self, device: torch.device | str) -> Labelled:
        return Labelled(self.contexts.to(device), self.labels.to(device), self.classes)

    def split(self, seed: int, passes: int) -> tuple[Labelled, Labelled]:
        """Four fifths to learn from, each `passes` times, and the rest to score on; which is which is the seed's."""
        check_positive_count(passes, "passes")
        order = torch.randperm(len(self), generator=generator(seed, "split")).to(self.labels.device)
        held = round(TEST_SHARE * len(self))
        return self[order[held:].repeat(passes)], self[order[:held]]


class FeedbackRule(ABC):
    """What somebody who wanted `labels` does when the reward is `rewards`: never sees the action."""

    @property
    @abstractmethod
    def space(self) -> Space:
        """The kind of feedback."""

    @property
    def checked(self) -> bool:
        """Whether all the feedback that it can ever give was checked when it was made; if not, every batch is."""
        return False

    @abstractmethod
    def feedback(self, labels: Tensor, rewards: Tensor, source: torch.Generator) -> Tensor:
        """Feedback (n, ...) for labels (n,) and rewards (n,) in {0, 1}."""


class Neighbour(FeedbackRule):
    """An example of the next class when content, of the previous class when not: the paper's image feedback."""

    def __init__(self, examples: Labelled, space: Space) -> None:
        space.check(examples.contexts, "examples")
        space.check_range(examples.contexts, "examples")
        order = examples.labels.argsort(stable=True)
        self._examples = examples.contexts[order]
        self._counts = examples.labels.bincount(minlength=examples.classes)
        if not bool((self._counts > 0).all()):
            raise InvalidInputError("examples", "every class needs at least one, to be shown as feedback")
        self._starts = self._counts.cumsum(0) - self._counts
        self._classes = examples.classes
        self._space = space

    @property
    def space(self) -> Space:
        return self._space

    @property
    def checked(self) -> bool:
        return True

    def feedback(self, labels: Tensor, rewards: Tensor, source: torch.Generator) -> Tensor:
        shown = (labels + torch.where(rewards > 0, 1, -1)) % self._classes
        places = torch.rand(len(labels), generator=source, device=labels.device) * self._counts[shown]
        return self._examples[self._starts[shown] + places.long()]


class Signs(FeedbackRule):
    """One of several signs, drawn from chances (classes, 2, signs): what a sign means depends on who sends it."""

    def __init__(self, chances: Tensor) -> None:
        if chances.ndim != 3 or chances.shape[1] != 2:
            raise InvalidInputError("chances", f"expected shape (classes, 2, signs), got {tuple(chances.shape)}")
        check_probabilities(chances.flatten(0, 1))
        self._chances = chances
        self._space = Category(chances.shape[-1])

    @classmethod
    def personal(cls, classes: int, source: torch.Generator, signs: int = 4) -> Signs:
        """For every class another sign for content and another for not; one time in ten any sign at all."""
        order = torch.rand(classes, signs, generator=source).argsort(1)[:, :2]
        chances = torch.nn.functional.one_hot(order, signs) * 0.9 + 0.1 / signs
        return cls(chances)

    @property
    def space(self) -> Space:
        return self._space

    @property
    def checked(self) -> bool:
        return True

    def feedback(self, labels: Tensor, rewards: Tensor, source: torch.Generator) -> Tensor:
        chances = self._chances.to(labels.device)[labels, rewards.long()]
        return draw(chances, torch.rand(len(labels), generator=source, device=labels.device))


class Classification(Environment):
    """Each training example comes once, in an order of the seed's."""

    def __init__(
        self, train: Labelled, test: Labelled, context: Space, rule: FeedbackRule, seed: int,
        *, right: float = 1.0, wrong: float = 0.0,
    ) -> None:  # fmt: skip
        if not 0 <= wrong < right <= 1:
            raise InvalidInputError("right", f"expected 0 <= wrong < right <= 1, got {right} and {wrong}")
        self._problem = Problem(train.classes, context, rule.space)
        for examples, name in ((train, "train"), (test, "test")):
            context.check(examples.contexts, name)
            context.check_range(examples.contexts, name)
        self._train, self._test, self._rule = train, test, rule
        self._chances = (wrong, right)
        self._seed = seed

    @property
    def problem(self) -> Problem:
        return self._problem

    @property
    def horizon(self) -> int | None:
        return len(self._train)

    @property
    def checked(self) -> bool:
        return self._rule.checked

    def stream(self, rounds: int, batch: int) -> Iterator[Arrival]:
        check_positive_count(rounds, "rounds")
        check_positive_count(batch, "batch")
        if rounds > len(self._train):
            raise InvalidInputError(
                "rounds", f"each example comes once, and there are {len(self._train)}; got {rounds} rounds"
            )
        device = self._train.labels.device
        order = torch.randperm(len(self._train), generator=generator(self._seed, "order"))[:rounds].to(device)
        source = generator(self._seed, "feedback", device)
        for start in range(0, rounds, batch):
            rows = order[start : start + batch]
            yield self._arrival(self._train.contexts[rows], self._train.labels[rows], source)

    def held_out(self) -> HeldOut:
        """Scored by whether the label is right, also where rewards are left to chance."""
        test = self._test
        return HeldOut(test.contexts, lambda actions: HiddenReward(self._hits(actions, test.labels).float()))

    def _arrival(self, contexts: Tensor, labels: Tensor, source: torch.Generator) -> Arrival:
        wrong, right = self._chances

        def react(actions: Tensor) -> tuple[Tensor, HiddenReward]:
            chance = torch.where(self._hits(actions, labels), right, wrong)
            rewards = (torch.rand(len(labels), generator=source, device=labels.device) < chance).float()
            return self._rule.feedback(labels, rewards, source), HiddenReward(rewards)

        return Arrival(contexts, react)

    def _hits(self, actions: Tensor, labels: Tensor) -> Tensor:
        """Which actions (n,) are the labels (n,)."""
        check_actions(actions, self._train.classes)
        check_count(actions, len(labels), "actions")
        return actions.to(labels.device) == labels
