"""The other view: does feedback, read in its context, speak of reward 1? phi in the paper, learned from examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor

from tacit.encoders.base import Encoder, Space
from tacit.errors import CorruptFileError, NotFittedError
from tacit.interactions import Interactions
from tacit.inverse.network import InverseTraining
from tacit.inverse.pair import Moved, PairNetwork, binary_losses
from tacit.seeding import initialisation
from tacit.storage import load_module
from tacit.training import Average, Replayed, eased_in, optimiser, subset

NOT_FITTED = "there are no examples of good and bad rounds yet; call fit first"
STEPS = 600
HALF = 64  # good rounds in a batch, and bad ones
RATE = 1e-3
EASE_IN = 40  # steps
SMOOTHED = 0.03  # of the examples may be wrong: without this a few of them would count for all
CHUNK = 2_000  # rows at a time where nothing is learned


class RewardModel(ABC):
    """Pr[reward 1 | context, feedback] when reward 1 and reward 0 are equally frequent: phi(x, y) in the paper."""

    @abstractmethod
    def fit(self, good: Interactions, bad: Interactions, encoders: tuple[Encoder, Encoder] | None) -> None:
        """Learn from rounds that had reward 1 and reward 0, as far as is known; goes on from what it knew before.

        `encoders` have learned to read contexts and feedback already; the first fit may start from them.
        """

    @abstractmethod
    def predict(self, contexts: Tensor, feedback: Tensor) -> Tensor:
        """phi(x, y) (n,), within [0, 1]; changes nothing. Before the first fit there is none: NotFittedError."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All that it goes on from, for saving; learning on may change them."""

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `tensors` gave."""


class NetworkReward(RewardModel):
    """A network of the inverse model's shape, with one answer; trained on as many good rounds as bad ones."""

    def __init__(
        self, context: Space, feedback: Space, training: InverseTraining,
        source: torch.Generator, device: torch.device | str = "cpu",
    ) -> None:  # fmt: skip
        self.training = training
        self._moved = Moved(context, feedback, training.augment, training.dropout)
        self._source = source
        self._device = torch.device(device)
        with initialisation(source):
            self._network = PairNetwork(context, feedback, 1, contrast=training.contrast > 0).to(self._device)
        self._average = Average(self._network, training.average)
        self._predict = Replayed(lambda x, y: self._average.network(x, y)[:, 0].sigmoid())
        self._fitted = False

    def fit(self, good: Interactions, bad: Interactions, encoders: tuple[Encoder, Encoder] | None) -> None:
        if not self._fitted:
            self._begin(bad, encoders)
        optim = optimiser("adamw", self._network, RATE)
        advance = eased_in(optim, EASE_IN)
        step = self._step(optim)
        labels = torch.full((2 * HALF,), SMOOTHED, device=self._device)
        labels[:HALF] = 1 - SMOOTHED
        for _ in range(STEPS):
            some = [self._drawn(rounds) for rounds in (good, bad)]
            x, y = (torch.cat(columns) for columns in zip(*some, strict=True))
            step(x, y, labels, *self._moved.noise(2 * HALF, self._source, self._device))
            advance()
        self._fitted = True

    @torch.no_grad()
    def predict(self, contexts: Tensor, feedback: Tensor) -> Tensor:
        if not self._fitted:
            raise NotFittedError(NOT_FITTED)
        parts = zip(contexts.split(CHUNK), feedback.split(CHUNK), strict=True)
        return torch.cat([self._predict(*part) for part in parts])

    def tensors(self) -> dict[str, Tensor]:
        parts = {"network": self._network.state_dict()}
        if self._fitted:
            parts["average"] = self._average.network.state_dict()
        return {f"{part}.{name}": value for part, entries in parts.items() for name, value in entries.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        load_module(self._network, subset(tensors, "network"), "reward model")
        average = subset(tensors, "average")
        if average:
            load_module(self._average.network, average, "reward model's average")
        self._fitted = bool(average)

    def _begin(self, rounds: Interactions, encoders: tuple[Encoder, Encoder] | None) -> None:
        own = self._network.context, self._network.feedback
        self._network.prepare(rounds.contexts, rounds.feedback)
        for encoder, learned in zip(own, encoders or own, strict=True):
            encoder.load_state_dict(learned.state_dict())
        self._average = Average(self._network, self.training.average)

    def _drawn(self, rounds: Interactions) -> tuple[Tensor, Tensor]:
        rows = torch.randint(len(rounds), (HALF,), generator=self._source, device=self._source.device)
        rows = rows.to(self._device)
        return rounds.contexts[rows], rounds.feedback[rows]

    def _step(self, optim: torch.optim.Optimizer) -> Replayed:
        network, contrast = self._network, self.training.contrast

        @torch.enable_grad()
        def step(x: Tensor, y: Tensor, labels: Tensor, x_noise: Tensor, y_noise: Tensor, dropped: Tensor) -> Tensor:
            optim.zero_grad(set_to_none=True)
            x, y = self._moved.pairs(x, y, x_noise, y_noise)
            x, y = network.context(x), network.feedback(y)
            loss = binary_losses(network.joined(x, y, self._moved.mask(dropped))[:, 0], labels).mean()
            if contrast:
                loss = loss + contrast * network.contrast_loss(x, y)
            loss.backward()
            optim.step()
            self._average.update()
            return loss.detach()

        return Replayed(step)


class FiniteReward(RewardModel):
    """The phi of a finite class (|Phi|, X, Y) that errs least on as many good rounds as bad ones."""

    def __init__(self, phi: Tensor) -> None:
        self._phi = phi
        self._chosen: int | None = None

    def fit(self, good: Interactions, bad: Interactions, encoders: tuple[Encoder, Encoder] | None) -> None:
        missed, wrong = (
            self._phi[:, rounds.contexts.long(), rounds.feedback.long()].double().mean(1) for rounds in (good, bad)
        )
        self._chosen = int((wrong - missed).argmin())

    def predict(self, contexts: Tensor, feedback: Tensor) -> Tensor:
        if self._chosen is None:
            raise NotFittedError(NOT_FITTED)
        return self._phi[self._chosen, contexts.long(), feedback.long()]

    def tensors(self) -> dict[str, Tensor]:
        return {} if self._chosen is None else {"chosen": torch.tensor(self._chosen)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        self._chosen = int(tensors["chosen"]) if tensors else None
        if self._chosen is not None and not 0 <= self._chosen < len(self._phi):
            raise CorruptFileError(f"the saved phi is number {self._chosen} of a class of {len(self._phi)}")
