"""The regression oracle as a network, trained on each batch as it comes and, if wanted, on earlier rounds again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from tacit.encoders.base import WIDTH, Encoder, Space
from tacit.errors import InvalidInputError
from tacit.interactions import check_real, check_whole
from tacit.oracles.base import Oracle
from tacit.oracles.replay import Replay
from tacit.seeding import initialisation
from tacit.storage import load_module
from tacit.training import (
    Average,
    LossName,
    OptimiserName,
    Replayed,
    check_names,
    optimiser,
    optimiser_tensors,
    restore_optimiser,
    subset,
    uniforms,
)  # fmt: skip

RATE = 1e-3
RELEARN = 500  # steps on rounds that were decoded anew
FIRST_GUESS = 0.1  # the reward expected of an action nothing is known about


@dataclass(frozen=True)
class OracleTraining:
    """How the network is trained: one step per batch, and `replay` steps of `batch` earlier rounds after it.

    `warm_up` steps on the exploration rounds come first, from the encoder that the inverse model learned. `average` is
    how slowly the weights that predict follow those in training. With all three 0 it is the paper's oracle.
    """

    loss: LossName = "squared"
    optimiser: OptimiserName = "adamw"
    replay: int = 4
    warm_up: int = 1_000
    average: float = 0.99
    batch: int = 128
    augment: bool = True
    capacity: int = 100_000

    def __post_init__(self) -> None:
        check_names("OracleTraining", self.loss, self.optimiser)
        for name, least in (("replay", 0), ("warm_up", 0), ("batch", 1), ("capacity", 1)):
            object.__setattr__(self, name, check_whole(getattr(self, name), least, f"OracleTraining.{name}"))
        object.__setattr__(self, "average", check_real(self.average, "OracleTraining.average"))
        if not 0 <= self.average < 1:
            raise InvalidInputError("OracleTraining.average", f"expected a number from 0 to 1, got {self.average}")


class OracleNetwork(nn.Module):
    """Logits (n, K) of the expected decoded reward of each action."""

    def __init__(self, context: Space, actions: int) -> None:
        super().__init__()
        self.context = context.encoder()
        self.head = nn.Linear(WIDTH, actions)
        nn.init.constant_(self.head.bias, math.log(FIRST_GUESS / (1 - FIRST_GUESS)))

    def forward(self, contexts: Tensor) -> Tensor:
        logits: Tensor = self.head(self.context(contexts))
        return logits


class NetworkOracle(Oracle):
    """Online regression by gradient descent; values stay within 0..1."""

    def __init__(
        self, context: Space, actions: int, training: OracleTraining,
        source: torch.Generator, device: torch.device | str = "cpu",
    ) -> None:  # fmt: skip
        self.training = training
        self._space = context
        self._source = source
        self._device = torch.device(device)
        with initialisation(source):
            self._network = OracleNetwork(context, actions)
        self._network.to(self._device)
        self._optim = optimiser(training.optimiser, self._network, RATE)
        remembers = training.replay or training.warm_up
        self._replay = Replay(training.capacity, context, self._device) if remembers else None
        self._average = Average(self._network, training.average)
        self._step = Replayed(self._training_step)
        self._predict = Replayed(lambda contexts: self._average.network(contexts).sigmoid())
        self._prepared = False

    @torch.no_grad()
    def predict(self, contexts: Tensor) -> Tensor:
        return self._predict(contexts)

    def warm_up(
        self, contexts: Tensor, actions: Tensor, decoded: Tensor, encoder: Encoder | None = None
    ) -> None:
        self._prepare(contexts)
        if not self.training.warm_up:
            return
        if encoder is not None:
            self._network.context.load_state_dict(encoder.state_dict())
            self._average.reset()
        self._remember(contexts, actions, decoded)
        self._learn_again(self.training.warm_up)

    def relearn(self, contexts: Tensor, actions: Tensor, decoded: Tensor) -> None:
        self._prepare(contexts)
        if self._replay is not None:
            self._replay = Replay(self.training.capacity, self._space, self._device)
            self._remember(contexts, actions, decoded)
            self._learn_again(RELEARN)

    def update(self, contexts: Tensor, actions: Tensor, decoded: Tensor) -> None:
        self._prepare(contexts)
        unmoved = uniforms(0, 0, self._source, self._device)
        for start in range(0, len(actions), self.training.batch):
            rows = slice(start, start + self.training.batch)
            self._step(contexts[rows], actions[rows], decoded[rows], unmoved)
            if self.training.replay:
                self._remember(contexts[rows], actions[rows], decoded[rows])
                self._learn_again(self.training.replay)

    def tensors(self) -> dict[str, Tensor]:
        parts = {"network": self._network.state_dict(), "optimiser": optimiser_tensors(self._optim)}
        if self.training.average:
            parts["average"] = self._average.network.state_dict()
        if self._replay is not None:
            parts["replay"] = self._replay.tensors()
        return {f"{part}.{name}": value for part, entries in parts.items() for name, value in entries.items()} | {
            "prepared": torch.tensor(self._prepared)
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        load_module(self._network, subset(tensors, "network"), "oracle")
        if self.training.average:
            load_module(self._average.network, subset(tensors, "average"), "oracle's average")
        restore_optimiser(self._optim, subset(tensors, "optimiser"))
        if self._replay is not None:
            self._replay.restore(subset(tensors, "replay"))
        self._prepared = bool(tensors["prepared"])

    def _prepare(self, contexts: Tensor) -> None:
        if not self._prepared:
            self._network.context.prepare(contexts)
            self._average.reset()
            self._prepared = True

    def _remember(self, contexts: Tensor, actions: Tensor, decoded: Tensor) -> None:
        assert self._replay is not None
        self._replay.add(contexts, actions, decoded)

    def _learn_again(self, steps: int) -> None:
        assert self._replay is not None
        width = self._space.noise_width if self.training.augment else 0
        for _ in range(steps):
            rounds = self._replay.sample(self.training.batch, self._source)
            self._step(*rounds, uniforms(self.training.batch, width, self._source, self._device))

    @torch.enable_grad()
    def _training_step(self, contexts: Tensor, actions: Tensor, decoded: Tensor, noise: Tensor) -> Tensor:
        """One step; augmented where there is noise, so that a fresh batch is learned as it came."""
        self._optim.zero_grad(set_to_none=True)
        if noise.numel():
            contexts = self._space.augment(contexts, noise)
        # A product with the one-hot action rather than a gather, whose gradient adds in no fixed order on a GPU.
        logits = self._network(contexts)
        taken = (logits * functional.one_hot(actions, logits.shape[1])).sum(1)
        if self.training.loss == "log":
            loss = functional.binary_cross_entropy_with_logits(taken, decoded)
        else:
            loss = (taken.sigmoid() - decoded).square().mean()
        loss.backward()
        self._optim.step()
        self._average.update()
        return loss.detach()
