"""Algorithm 1 of the paper: explore uniformly for 2N rounds, decode the second half, exploit the best policy.

| here                    | paper, Algorithm 1                                                          |
|-------------------------|-----------------------------------------------------------------------------|
| explore                 | N; lines 1-2: a_t uniform for 2N rounds, observe y_t                        |
| _inverse.fit            | line 3: h = argmin over H of the squared error on rounds 1..N, Eq. (2)      |
| _decode                 | line 4: r(x, y, a) = G(h_a(x, y), theta/alpha - sigma, sigma)               |
| _policies.maximise      | line 5: pi = argmax over Pi of sum over rounds N+1..2N of pi(a_i|x_i) r_i   |
| _probabilities          | lines 6-7: follow pi for the rest of the T rounds                           |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from tacit import exploration
from tacit.algorithms.horizon import Horizon
from tacit.algorithms.learner import Learner
from tacit.algorithms.models import Models, Networks
from tacit.algorithms.store import Store
from tacit.decoder import Decoder
from tacit.encoders import Problem, Space
from tacit.errors import InvalidInputError, NotFittedError, UntrustworthyDecoderError
from tacit.interactions import Ids, Interactions, check_interactions, check_positive_count
from tacit.inverse import Fit

# A logged 1/3 is not exactly a third.
UNIFORM_TOLERANCE = 1e-3


class OffPolicy(Learner):
    """Explores for 2 `explore` rounds, then follows one policy; or learns it from a uniform log with `fit`.

    Without `explore` it can only `fit`. The first half of the rounds teaches the inverse model, the second half,
    decoded, the policy.
    """

    def __init__(
        self, actions: int, context: Space, feedback: Space, *, explore: int | Horizon | None = None,
        decoder: Decoder | None = None, models: Models | None = None, seed: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(Problem(actions, context, feedback), models or Networks(), decoder, seed)
        if isinstance(explore, Horizon):
            explore = explore.off_policy_rounds(actions, self.decoder.sigma)
        self.explore = None if explore is None else check_positive_count(explore, "explore")
        self._policies = self.models.policies(self.problem, self._training)
        self._store = Store(2 * self.explore) if self.explore else None
        self._fitted = False

    @property
    def exploring(self) -> bool:
        return not self._fitted

    def settings(self) -> dict[str, object]:
        return {"explore": self.explore}

    def fit(self, log: Interactions) -> Self:
        """Learn from a log of uniformly drawn rounds; refuses to if the feedback carries no reward it can decode."""
        check_interactions(log)
        self._check_log(log)
        if len(log) < 2 * self.problem.actions:
            raise InvalidInputError(
                "log", f"{len(log)} rounds are too few for {self.problem.actions} actions; thousands are usual"
            )
        fit = self._ground(log.to(self.models.device))
        if not fit.better_than_chance:
            raise UntrustworthyDecoderError(
                f"the feedback does not tell which action was taken: {fit}. Either {len(log)} rounds are too few, or "
                "the feedback does not depend on the reward, or reward 1 is not the rarer event"
            )
        return self

    def decode(self, log: Interactions) -> Tensor:
        """Decoded rewards (n,) of logged rounds."""
        if self.fit_quality is None:
            raise NotFittedError("nothing was learned yet: fit a log first")
        check_interactions(log)
        self._check_log(log)
        return self._decode(log.to(self.models.device)).to(log.actions.device)

    def _probabilities(self, contexts: Tensor, ids: Ids) -> Tensor:
        K = self.problem.actions
        if self._fitted:
            return functional.one_hot(self._policies.scores(contexts).argmax(-1), K).float()
        if self.explore is None:
            raise NotFittedError("there is no policy yet: call fit(log), or give `explore` to learn while acting")
        return exploration.uniform(len(contexts), K, contexts.device)

    def _absorb(self, rounds: Interactions) -> Tensor:
        if self._fitted:
            return self._decode(rounds)
        if self._store is None:
            raise NotFittedError("there is no policy yet: call fit(log), or give `explore` to learn while acting")
        self._store.add(rounds)
        if self._store.due:
            fit = self._ground(self._store.rounds())
            if fit.better_than_chance:
                self._store.clear()
            else:
                self._store.postpone(fit)
        return torch.full((len(rounds),), torch.nan, device=rounds.actions.device)

    def _ground(self, rounds: Interactions) -> Fit:
        """Learn h from the first half and, if it knows anything, the policy from the second half, decoded."""
        half = len(rounds) // 2
        self.fit_quality = fit = self._inverse.fit(rounds[slice(None, half)])
        if fit.better_than_chance:
            second = rounds[slice(half, None)]
            self._policies.maximise(second.contexts, second.actions, self._decode(second))
            self._fitted = True
        return fit

    def _values(self, contexts: Tensor) -> Tensor:
        if not self._fitted:
            raise NotFittedError("there is no policy yet: more feedback, or fit(log), is needed first")
        return self._policies.scores(contexts)

    def _check_log(self, log: Interactions) -> None:
        self.problem.context.check(log.contexts, "contexts")
        self.problem.context.check_range(log.contexts, "contexts")
        self.problem.feedback.check(log.feedback, "feedback")
        self.problem.feedback.check_range(log.feedback, "feedback")
        K = self.problem.actions
        if log.action_count != K:
            raise InvalidInputError(
                "probabilities", f"expected one column for each of {K} actions, got {log.action_count}"
            )
        if bool(((log.probabilities - 1 / K).abs() > UNIFORM_TOLERANCE).any()):
            raise InvalidInputError(
                "probabilities", "Algorithm 1 learns from uniformly drawn actions, and this log was written by another "
                "policy; fit the rounds that were drawn uniformly"
            )

    def _parts(self) -> dict[str, dict[str, Tensor]]:
        parts = {"policies": self._policies.tensors(), "progress": {"fitted": torch.tensor(self._fitted)}}
        return parts if self._store is None else parts | {"store": self._store.tensors()}

    def _restore_parts(self, parts: Mapping[str, Mapping[str, Tensor]]) -> None:
        self._policies.restore(parts["policies"])
        self._fitted = bool(parts["progress"]["fitted"])
        if self._store is not None:
            self._store.restore(parts["store"], self.models.device)
