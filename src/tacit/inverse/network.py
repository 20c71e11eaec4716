"""The inverse model as a network: an encoder for the context, one for the feedback, joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Optimizer

from tacit.encoders.base import WIDTH, Space
from tacit.errors import NotFittedError
from tacit.interactions import Interactions, check_whole
from tacit.inverse.base import Fit, InverseModel, check_rounds, is_uniform, leanings, worth
from tacit.seeding import initialisation
from tacit.storage import load_module
from tacit.training import (
    EarlyStopping,
    LossName,
    OptimiserName,
    Replayed,
    check_names,
    one_cycle,
    optimiser,
    uniforms,
)  # fmt: skip

# Rounds kept back, to choose the epoch and to tell learning from memorising: enough for the standard error to fall
# well below what there is to gain, within a share of all rounds. Where a round is worth less, more are kept back.
HELD_OUT = 500
LEAST_SHARE, MOST_SHARE = 0.1, 0.3
ATTEMPTS = 3  # fresh starts at most while the model is no better than chance
CHUNK = 2_000  # rows at a time where nothing is learned
PEAK_RATE = 2e-3


@dataclass(frozen=True)
class InverseTraining:
    """How the network is trained. The weights kept are those of the epoch with the lowest held-out loss.

    Without a `loss` it is the paper's squared loss where actions were drawn uniformly, and log loss elsewhere: squared
    loss hardly notices what is said of rare actions. Either loss is least, in the long run, for the true posterior.
    `patience` is how many epochs may pass without a better one; None runs all `epochs`, as the falling
    rate of AdamW wants. Of several `starts` the one with the lowest held-out loss is kept.
    """

    loss: LossName | None = None
    optimiser: OptimiserName = "adamw"
    epochs: int = 60
    batch: int = 128
    augment: bool = True
    patience: int | None = None
    starts: int = 1

    def __post_init__(self) -> None:
        check_names("InverseTraining", self.loss or "squared", self.optimiser)
        for name in ("epochs", "batch", "starts", *(() if self.patience is None else ("patience",))):
            object.__setattr__(self, name, check_whole(getattr(self, name), 1, f"InverseTraining.{name}"))


class InverseNetwork(nn.Module):
    """Logits (n, K) of the action taken."""

    def __init__(self, context: Space, feedback: Space, actions: int) -> None:
        super().__init__()
        self.context = context.encoder()
        self.feedback = feedback.encoder()
        self.head = nn.Sequential(nn.Linear(2 * WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, actions))

    def forward(self, contexts: Tensor, feedback: Tensor) -> Tensor:
        logits: Tensor = self.head(torch.cat([self.context(contexts), self.feedback(feedback)], 1))
        return logits


class NetworkInverse(InverseModel):
    """Empirical risk minimisation by gradient descent, stopped on held-out rounds."""

    def __init__(
        self, context: Space, feedback: Space, actions: int, training: InverseTraining,
        source: torch.Generator, device: torch.device | str = "cpu",
    ) -> None:  # fmt: skip
        self.training = training
        self._spaces = context, feedback
        self._actions = actions
        self._source = source
        self._device = torch.device(device)
        self._network = self._fresh()
        self._posterior = Replayed(self._forward)
        self._loss = training.loss or "squared"
        self._fitted = False

    def fit(self, rounds: Interactions) -> Fit:
        self._check(rounds)
        self._loss = self.training.loss or ("squared" if is_uniform(rounds.probabilities) else "log")
        order = torch.randperm(len(rounds), generator=self._source, device=self._source.device).to(self._device)
        rounds = rounds.to(self._device)
        per_uniform_round = len(rounds) / max(1, worth(rounds.probabilities))
        needed = max(HELD_OUT, LEAST_SHARE * len(rounds)) * per_uniform_round
        held = max(1, round(min(needed, MOST_SHARE * len(rounds))))
        train, test = rounds[order[held:]], rounds[order[:held]]
        if not len(train):
            return self._score(self._network, test)
        best: tuple[Fit, InverseNetwork] | None = None
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

    def _fresh(self) -> InverseNetwork:
        with initialisation(self._source):
            network = InverseNetwork(*self._spaces, self._actions)
        return network.to(self._device)

    def _forward(self, contexts: Tensor, feedback: Tensor) -> Tensor:
        posterior: Tensor = self._network(contexts, feedback).softmax(-1)
        return posterior

    def _attempt(self, train: Interactions, test: Interactions) -> tuple[InverseNetwork, Fit]:
        """One training from a fresh start: the weights of its best epoch, and how good they are."""
        network = self._fresh()
        network.context.prepare(train.contexts)
        network.feedback.prepare(train.feedback)
        batch = min(self.training.batch, len(train))
        optim = optimiser(self.training.optimiser, network, PEAK_RATE)
        advance = one_cycle(optim, PEAK_RATE, self.training.epochs * (len(train) // batch))
        step = Replayed(self._step(network, optim))
        leaning = leanings(train.probabilities)

        def learn(rows: Tensor) -> None:
            rows = rows.to(self._device)
            seen = train.contexts[rows], train.feedback[rows], train.actions[rows], leaning[rows]
            step(*seen, *self._noise(batch))
            advance()

        stopping = EarlyStopping(network, lambda: self._score(network, test).loss, self.training.patience)
        stopping.run(learn, len(train), batch, self.training.epochs, self._source)
        return network, self._score(network, test)

    def _step(self, network: InverseNetwork, optim: Optimizer) -> Callable[..., Tensor]:
        context, feedback = self._spaces

        @torch.enable_grad()
        def step(x: Tensor, y: Tensor, actions: Tensor, leaning: Tensor, x_noise: Tensor, y_noise: Tensor) -> Tensor:
            optim.zero_grad(set_to_none=True)
            x = context.augment(x, x_noise) if x_noise.numel() else x
            y = feedback.augment(y, y_noise) if y_noise.numel() else y
            loss = self._losses(network(x, y) + leaning, actions).mean()
            loss.backward()
            optim.step()
            return loss.detach()

        return step

    def _noise(self, count: int) -> tuple[Tensor, Tensor]:
        augment = self.training.augment
        context, feedback = (
            uniforms(count, space.noise_width if augment else 0, self._source, self._device) for space in self._spaces
        )
        return context, feedback

    def _losses(self, logits: Tensor, actions: Tensor) -> Tensor:
        if self._loss == "log":
            return functional.cross_entropy(logits, actions, reduction="none")
        return (logits.softmax(-1) - functional.one_hot(actions, self._actions)).square().sum(-1)

    @torch.no_grad()
    def _score(self, network: InverseNetwork, rounds: Interactions) -> Fit:
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
