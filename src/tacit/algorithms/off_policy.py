"""Algorithm 1 of the paper: explore uniformly for 2N rounds, decode the second half, exploit the best policy.

| here                    | paper, Algorithm 1                                                          |
|-------------------------|-----------------------------------------------------------------------------|
| explore                 | N; lines 1-2: a_t uniform for 2N rounds, observe y_t                        |
| _inverse.fit            | line 3: h = argmin over H of the squared error on rounds 1..N, Eq. (3)      |
| _decode                 | line 4: r(x, y, a) = G(h_a(x, y), theta/alpha - sigma, sigma)               |
| _policies.maximise      | line 5: pi = argmax over Pi of sum over rounds N+1..2N of pi(a_i|x_i) r_i   |
| _probabilities          | lines 6-7: follow pi for the rest of the T rounds                           |
| weights                 | not in the paper: 1/(K p(a_i|x_i)), 1 for uniform rounds, before r_i in line 5 |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from tacit import exploration
from tacit.algorithms.horizon import Horizon
from tacit.algorithms.learner import Learner
from tacit.algorithms.log import learnable, weights
from tacit.algorithms.models import Models, Networks
from tacit.algorithms.store import Store
from tacit.decoder import Decoder
from tacit.encoders import Problem, Space
from tacit.errors import InvalidInputError, NotFittedError
from tacit.health import Sample
from tacit.interactions import Ids, Interactions, check_interactions, check_positive_count

NO_POLICY = "there is no policy yet: call fit(log), or give `explore` to learn while acting"


class OffPolicy(Learner):
    """Explores for 2 `explore` rounds, then follows one policy; or learns it from a log of any policy with `fit`.

    Without `explore` it can only `fit`. The first half of the rounds teaches the inverse model, the second half,
    decoded, the policy.
    """

    def __init__(
        self, actions: int, context: Space, feedback: Space, *, explore: int | Horizon | None = None,
        decoder: Decoder | None = None, models: Models | None = None, seed: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(Problem(actions, context, feedback), Networks() if models is None else models, decoder, seed)
        if isinstance(explore, Horizon):
            explore = explore.off_policy_rounds(actions, self.decoder.sigma)
        self.explore = None if explore is None else check_positive_count(explore, "explore")
        self._policies = self.models.policies(self.problem, self._training)
        self._store = Store(2 * self.explore, self.problem) if self.explore else None

    def settings(self) -> dict[str, object]:
        return {"explore": self.explore}

    def fit(self, log: Interactions) -> Self:
        """Learn from a log of any policy, whatever the probabilities that it drew its actions from.

        Refuses a log that leaves too little to chance, contradicts itself, or holds no reward that can be decoded; what
        was learned from an earlier one stays then.
        """
        rounds = self._checked(log)
        sample = Sample()
        sample.add(rounds, torch.full((len(rounds),), torch.nan, device=rounds.actions.device))
        if self.exploring:  # there is nothing else to judge, should the log be refused
            self._sample = sample
        rounds = learnable(rounds)
        with self._kept_if_this_fails():
            self._ground(rounds)
        self._grounded, self._sample = True, sample
        return self

    def decode(self, log: Interactions) -> Tensor:
        """Decoded rewards (n,) of logged rounds, whatever policy drew their actions."""
        rounds = self._checked(log)
        if self.exploring:
            raise NotFittedError("there is no decoder yet that can be trusted: fit a log first")
        return self._decode(rounds).to(log.actions.device)

    def _probabilities(self, contexts: Tensor, ids: Ids) -> Tensor:
        K = self.problem.actions
        if self._grounded:
            return functional.one_hot(self._policies.scores(contexts).argmax(-1), K).float()
        if self.explore is None:
            raise NotFittedError(NO_POLICY)
        return exploration.uniform(len(contexts), K, contexts.device)

    def _absorb(self, rounds: Interactions) -> Tensor:
        if self._grounded:
            return self._decode(rounds)
        if self._store is None:
            raise NotFittedError(NO_POLICY)
        self._explore(self._store, rounds)
        return torch.full((len(rounds),), torch.nan, device=rounds.actions.device)

    def _ground(self, rounds: Interactions) -> None:
        half = len(rounds) // 2
        self.fit_quality = self._inverse.fit(rounds[slice(half)])
        second = rounds[slice(half, None)]
        decoded = weights(second) * self._trusted(self.fit_quality, second)
        self._policies.maximise(second.contexts, second.actions, decoded, self._inverse.context_encoder)

    @contextmanager
    def _kept_if_this_fails(self) -> Iterator[None]:
        """Take back the models that there are, should learning new ones fail; before any, the failed ones stay."""
        if self.exploring:
            yield
            return
        fit, inverse, policies = deepcopy((self.fit_quality, self._inverse.tensors(), self._policies.tensors()))
        try:
            yield
        except BaseException:
            self.fit_quality = fit
            self._inverse.restore(inverse)
            self._policies.restore(policies)
            raise

    def _values(self, contexts: Tensor) -> Tensor:
        if not self._grounded:
            raise NotFittedError("there is no policy yet: more feedback, or fit(log), is needed first")
        return self._policies.scores(contexts)

    def _checked(self, log: Interactions) -> Interactions:
        """A log that fits the problem, where the models live."""
        check_interactions(log)
        self.problem.context.check(log.contexts, "contexts")
        self.problem.context.check_range(log.contexts, "contexts")
        self.problem.feedback.check(log.feedback, "feedback")
        self.problem.feedback.check_range(log.feedback, "feedback")
        K = self.problem.actions
        if log.action_count != K:
            raise InvalidInputError(
                "probabilities", f"expected one column for each of {K} actions, got {log.action_count}"
            )
        return replace(log, actions=log.actions.long()).to(self.models.device)

    def _parts(self) -> dict[str, dict[str, Tensor]]:
        parts = {"policies": self._policies.tensors()}
        return parts if self._store is None else parts | {"store": self._store.tensors()}

    def _restore_parts(self, parts: Mapping[str, Mapping[str, Tensor]]) -> None:
        self._policies.restore(parts["policies"] if self._grounded else parts.get("policies", {}))
        if self._store is not None:
            self._store.restore(parts["store"], self.models.device)
