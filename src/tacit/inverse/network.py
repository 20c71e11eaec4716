"""The inverse model as a network: an encoder for the context, one for the feedback, joined."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional
from torch.optim import Optimizer

from tacit.encoders.base import Encoder, Space
from tacit.errors import InvalidInputError, NotFittedError
from tacit.interactions import Interactions, check_real, check_whole
from tacit.inverse.base import Fit, InverseModel, check_rounds, is_uniform, leanings, worth
from tacit.inverse.pair import Moved, PairNetwork
from tacit.seeding import initialisation
from tacit.storage import load_module
from tacit.training import (
    Average,
    EarlyStopping,
    LossName,
    OptimiserName,
    Replayed,
    check_names,
    eased_in,
    optimiser,
)  # fmt: skip

# Rounds kept back, to choose the weights and to tell learning from memorising: enough for the standard error to fall
# well below what there is to gain, within a share of all rounds. Where a round is worth less, more are kept back.
HELD_OUT = 500
LEAST_SHARE, MOST_SHARE = 0.1, 0.3
ATTEMPTS = 3  # fresh starts at most while the model is no better than chance
CHUNK = 2_000  # rows at a time where nothing is learned
RATE = 2e-3
EASE_IN = 40  # steps


@dataclass(frozen=True)
class InverseTraining:
    """How the network is trained. The weights kept are those with the lowest held-out loss.

    Without a `loss` it is the paper's squared loss where actions were drawn uniformly, and log loss elsewhere: squared
    loss hardly notices what is said of rare actions. Either loss is least, in the long run, for the true posterior.
    For `contrast_steps` the encoders learn only which feedback belongs to which context; later that counts `contrast`
    times beside the loss. `average` is how slowly the weights that are scored and kept follow those in training;
    `dropout` the share of units left out in a step. Training ends after `steps`, or when `patience` scores, `interval`
    steps apart at least, have brought nothing better. Of several `starts` the one with the lowest loss is kept.
    """

    loss: LossName | None = None
    optimiser: OptimiserName = "adamw"
    augment: bool = True
    contrast: float = 0.3
    contrast_steps: int = 300
    average: float = 0.98
    dropout: float = 0.3
    steps: int = 3_000
    batch: int = 128
    patience: int = 8
    interval: int = 32
    starts: int = 1

    def __post_init__(self) -> None:
        check_names("InverseTraining", self.loss or "squared", self.optimiser)
        counts = {"steps": 1, "batch": 1, "patience": 1, "interval": 1, "starts": 1, "contrast_steps": 0}
        for name, least in counts.items():
            object.__setattr__(self, name, check_whole(getattr(self, name), least, f"InverseTraining.{name}"))
        for name, most in (("contrast", math.inf), ("average", 1), ("dropout", 1)):
            value = check_real(getattr(self, name), f"InverseTraining.{name}")
            if not (math.isfinite(value) and 0 <= value < most):
                raise InvalidInputError(f"InverseTraining.{name}", f"expected a number from 0 to {most}, got {value}")
            object.__setattr__(self, name, value)
        if self.contrast_steps and not self.contrast:
            raise InvalidInputError("InverseTraining.contrast_steps", "without `contrast` they would learn nothing")


class NetworkInverse(InverseModel):
    """Empirical risk minimisation by gradient descent, stopped on held-out rounds."""

    def __init__(
        self, context: Space, feedback: Space, actions: int, training: InverseTraining,
        source: torch.Generator, device: torch.device | str = "cpu",
    ) -> None:  # fmt: skip
        self.training = training
        self._spaces = context, feedback
        self._moved = Moved(context, feedback, training.augment, training.dropout)
        self._actions = actions
        self._source = source
        self._device = torch.device(device)
        self._network = self._fresh()
        self._posterior = Replayed(self._forward)
        self._loss = training.loss or "squared"
        self._fitted = False

    def fit(self, rounds: Interactions, test: Interactions | None = None) -> Fit:
        self._check(rounds)
        self._loss = self.training.loss or ("squared" if is_uniform(rounds.probabilities) else "log")
        if test is not None:
            self._check(test)
            return self._fit(rounds.to(self._device), test.to(self._device))
        order = torch.randperm(len(rounds), generator=self._source, device=self._source.device).to(self._device)
        rounds = rounds.to(self._device)
        per_uniform_round = len(rounds) / max(1, worth(rounds.probabilities))
        needed = max(HELD_OUT, LEAST_SHARE * len(rounds)) * per_uniform_round
        held = max(1, round(min(needed, MOST_SHARE * len(rounds))))
        return self._fit(rounds[order[held:]], rounds[order[:held]])

    def _fit(self, train: Interactions, test: Interactions) -> Fit:
        if not len(train):
            return self._score(self._network, test)
        best: tuple[Fit, PairNetwork] | None = None
        for attempt in range(max(ATTEMPTS, self.training.starts)):
            network, fit = self._attempt(train, test)
            if best is None or fit.loss < best[0].loss:
                best = fit, network
            if attempt + 1 >= self.training.starts and best[0].better_than_chance:
                break
        assert best is not None
        self._network, self._fitted = best[1], True
        self._posterior = Replayed(self._forward)
        return best[0]

    @torch.no_grad()
    def posterior(self, contexts: Tensor, feedback: Tensor) -> Tensor:
        if not self._fitted:
            raise NotFittedError("the inverse model has not been fitted; call fit with logged rounds first")
        return self._posterior(contexts, feedback)

    @property
    def encoders(self) -> tuple[Encoder, Encoder] | None:
        return (self._network.context, self._network.feedback) if self._fitted else None

    def tensors(self) -> dict[str, Tensor]:
        return dict(self._network.state_dict()) if self._fitted else {}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        if tensors:
            load_module(self._network, tensors, "inverse model")
        self._fitted = bool(tensors)

    def _check(self, rounds: Interactions) -> None:
        check_rounds(rounds, self._actions)
        columns = (rounds.contexts, "contexts"), (rounds.feedback, "feedback")
        for space, (values, name) in zip(self._spaces, columns, strict=True):
            space.check(values, name)
            space.check_range(values, name)

    def _fresh(self) -> PairNetwork:
        with initialisation(self._source):
            network = PairNetwork(*self._spaces, self._actions, contrast=self.training.contrast > 0)
        return network.to(self._device)

    def _forward(self, contexts: Tensor, feedback: Tensor) -> Tensor:
        posterior: Tensor = self._network(contexts, feedback).softmax(-1)
        return posterior

    def _attempt(self, train: Interactions, test: Interactions) -> tuple[PairNetwork, Fit]:
        """One training from a fresh start: the weights with the lowest held-out loss, and how good they are."""
        settings = self.training
        network = self._fresh()
        network.prepare(train.contexts, train.feedback)
        kept = Average(network, settings.average)
        batch = min(settings.batch, len(train))
        optim = optimiser(settings.optimiser, network, RATE)
        advance = eased_in(optim, EASE_IN)
        step = Replayed(self._step(network, kept, optim))
        leaning = leanings(train.probabilities)
        counts = iter(range(settings.contrast_steps + settings.steps + len(train)))

        def learn(rows: Tensor) -> None:
            rows = rows.to(self._device)
            seen = train.contexts[rows], train.feedback[rows], train.actions[rows], leaning[rows]
            # As a tensor, because a number would be frozen into a CUDA graph.
            share = torch.full((), float(next(counts) >= settings.contrast_steps), device=self._device)
            step(*seen, share, *self._moved.noise(batch, self._source, self._device))
            advance()

        stopping = EarlyStopping(
            kept.network, lambda: self._score(kept.network, test).loss, settings.patience, settings.interval,
            settings.contrast_steps,
        )  # fmt: skip
        epochs = -(-(settings.contrast_steps + settings.steps) // (len(train) // batch))
        stopping.run(learn, len(train), batch, epochs, self._source)
        network.load_state_dict(kept.network.state_dict())
        return network, self._score(network, test)

    def _step(self, network: PairNetwork, kept: Average[PairNetwork], optim: Optimizer) -> Callable[..., Tensor]:
        contrast = self.training.contrast

        @torch.enable_grad()
        def step(
            x: Tensor, y: Tensor, actions: Tensor, leaning: Tensor, share: Tensor,
            x_noise: Tensor, y_noise: Tensor, dropped: Tensor,
        ) -> Tensor:  # fmt: skip
            optim.zero_grad(set_to_none=True)
            x, y = self._moved.pairs(x, y, x_noise, y_noise)
            x, y = network.context(x), network.feedback(y)
            logits = network.joined(x, y, self._moved.mask(dropped))
            loss = share * self._losses(logits + leaning, actions).mean()
            if contrast:
                loss = loss + contrast * network.contrast_loss(x, y)
            loss.backward()
            optim.step()
            kept.update()
            return loss.detach()

        return step

    def _losses(self, logits: Tensor, actions: Tensor) -> Tensor:
        if self._loss == "log":
            return functional.cross_entropy(logits, actions, reduction="none")
        return (logits.softmax(-1) - functional.one_hot(actions, self._actions)).square().sum(-1)

    @torch.no_grad()
    def _score(self, network: PairNetwork, rounds: Interactions) -> Fit:
        parts = [rounds[slice(start, start + CHUNK)] for start in range(0, len(rounds), CHUNK)]
        leaning = [leanings(part.probabilities) for part in parts]
        losses = torch.cat([
            self._losses(network(part.contexts, part.feedback) + known, part.actions)
            for part, known in zip(parts, leaning, strict=True)
        ])  # fmt: skip
        chance = self._losses(torch.cat(leaning), rounds.actions)
        # Compared round by round; from the first round's on, as it is the same in every round if p is uniform.
        excess = chance - chance[0]
        return Fit(
            loss=float(losses.mean()), chance=float(chance[0]) + float(excess.mean()), rounds=len(losses),
            error=float((losses - excess).std()) / len(losses) ** 0.5 if len(losses) > 1 else float("inf"),
            held_out=True, worth=worth(rounds.probabilities),
        )  # fmt: skip
