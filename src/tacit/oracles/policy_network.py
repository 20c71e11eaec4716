"""Policy search by gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional
from torch.optim import Optimizer

from tacit.encoders.base import Encoder, Space
from tacit.errors import NotFittedError
from tacit.oracles.network import OracleNetwork, OracleTraining
from tacit.oracles.policies import NOTHING_CHOSEN, PolicyOracle
from tacit.seeding import initialisation
from tacit.storage import load_module
from tacit.training import EarlyStopping, Replayed, one_cycle, optimiser, subset, uniforms

EPOCHS = 100
PEAK_RATE = 2e-3
HELD_OUT = 0.1


class NetworkPolicies(PolicyOracle):
    """A softmax policy, climbing sum_i r_i log pi(a_i | x_i): a concave stand-in for the sum of r_i pi(a_i | x_i).

    The weights kept are those of the epoch with the highest value on held-out rounds.
    """

    def __init__(
        self, context: Space, actions: int, training: OracleTraining,
        source: torch.Generator, device: torch.device | str = "cpu",
    ) -> None:  # fmt: skip
        self.training = training
        self._space = context
        self._actions = actions
        self._source = source
        self._device = torch.device(device)
        self._network = self._fresh()
        self._scores = Replayed(self._network)
        self._chosen = False

    def maximise(
        self, contexts: Tensor, actions: Tensor, decoded: Tensor, encoder: Encoder | None = None
    ) -> None:
        if self._chosen:
            self._network = self._fresh()
            self._scores = Replayed(self._network)
        self._chosen = True
        self._network.context.prepare(contexts)
        if encoder is not None and self.training.warm_up:
            self._network.context.load_state_dict(encoder.state_dict())
        # Rounds decoded as 0 weigh nothing.
        rows = decoded.nonzero()[:, 0]
        rows = rows[torch.randperm(len(rows), generator=self._source, device=self._source.device).to(rows.device)]
        if len(rows) < 2:
            return
        held = max(1, round(HELD_OUT * len(rows)))
        test = tuple(column[rows[:held]] for column in (contexts, actions, decoded))
        train = tuple(column[rows[held:]] for column in (contexts, actions, decoded))
        width = self._space.noise_width if self.training.augment else 0
        batch = min(self.training.batch, len(train[0]))
        optim = optimiser(self.training.optimiser, self._network, PEAK_RATE)
        step = Replayed(self._step(optim))
        advance = one_cycle(optim, PEAK_RATE, EPOCHS * (len(train[0]) // batch))

        def learn(chosen: Tensor) -> None:
            chosen = chosen.to(self._device)
            step(*(column[chosen] for column in train), uniforms(batch, width, self._source, self._device))
            advance()

        stopping = EarlyStopping(self._network, lambda: float(self._loss(*test).detach()))
        stopping.run(learn, len(train[0]), batch, EPOCHS, self._source)

    @torch.no_grad()
    def scores(self, contexts: Tensor) -> Tensor:
        if not self._chosen:
            raise NotFittedError(NOTHING_CHOSEN)
        return self._scores(contexts)

    def tensors(self) -> dict[str, Tensor]:
        network = {f"network.{name}": value for name, value in self._network.state_dict().items()}
        return network | {"chosen": torch.tensor(self._chosen)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        load_module(self._network, subset(tensors, "network"), "policy")
        self._chosen = bool(tensors["chosen"])

    def _fresh(self) -> OracleNetwork:
        with initialisation(self._source):
            network = OracleNetwork(self._space, self._actions)
        return network.to(self._device)

    def _loss(self, contexts: Tensor, actions: Tensor, decoded: Tensor) -> Tensor:
        losses = functional.cross_entropy(self._network(contexts), actions, reduction="none")
        return (decoded * losses).mean()

    def _step(self, optim: Optimizer) -> Callable[..., Tensor]:
        @torch.enable_grad()
        def step(contexts: Tensor, actions: Tensor, decoded: Tensor, noise: Tensor) -> Tensor:
            optim.zero_grad(set_to_none=True)
            if noise.numel():
                contexts = self._space.augment(contexts, noise)
            loss = self._loss(contexts, actions, decoded)
            loss.backward()
            optim.step()
            return loss.detach()

        return step
