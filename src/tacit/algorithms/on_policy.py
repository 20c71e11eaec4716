"""Algorithm 2 of the paper: explore uniformly, learn h, then inverse-gap weighting on decoded rewards.

| here                     | paper, Algorithm 2                                                     |
|--------------------------|------------------------------------------------------------------------|
| explore                  | N, lines 1-2: a_t uniform, observe y_t                                 |
| _inverse.fit             | line 3: h = argmin over H of the squared error on the N rounds, Eq. (3) |
| _oracle.predict          | line 6: f_t from the oracle AlgSq                                      |
| exploration.inverse_gap  | line 7: p_t, Eq. (7)                                                   |
| _decode, _oracle.update  | line 9: feed (x_t, a_t, G(h_a(x_t, y_t), theta/alpha - sigma, sigma))  |
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from tacit import exploration
from tacit.algorithms.horizon import Horizon
from tacit.algorithms.learner import Learner
from tacit.algorithms.models import Models, Networks
from tacit.algorithms.store import Store
from tacit.decoder import Decoder
from tacit.encoders import Problem, Space
from tacit.errors import NotFittedError
from tacit.exploration import Schedule, SquareRoot
from tacit.interactions import Ids, Interactions, check_kind, check_positive_count


class OnPolicy(Learner):
    """Explores for `explore` rounds (or as long as the theory says for a `Horizon`), then acts on what it learned.

    Once the exploration rounds have had their feedback, the inverse model learns from them. Should it be no better
    than chance, or nothing be decoded as rewarded, the learner warns and keeps exploring: it never acts on rewards it
    cannot decode.
    """

    def __init__(
        self, actions: int, context: Space, feedback: Space, *, explore: int | Horizon,
        decoder: Decoder | None = None, schedule: Schedule | None = None, models: Models | None = None, seed: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(Problem(actions, context, feedback), Networks() if models is None else models, decoder, seed)
        if isinstance(explore, Horizon):
            schedule = schedule or exploration.Constant(explore.gamma(actions, self.decoder.sigma))
            explore = explore.on_policy_rounds(actions, self.decoder.sigma)
        self.explore = check_positive_count(explore, "explore")
        self.schedule = SquareRoot() if schedule is None else schedule
        check_kind(self.schedule, Schedule, "schedule")
        self._oracle = self.models.oracle(self.problem, self._training)
        self._store = Store(self.explore, self.problem)

    def settings(self) -> dict[str, object]:
        return {"explore": self.explore, "schedule": self.schedule}

    def _probabilities(self, contexts: Tensor, ids: Ids) -> Tensor:
        K = self.problem.actions
        if self.exploring:
            return exploration.uniform(len(contexts), K, contexts.device)
        t = torch.arange(int(ids[0]) + 1, int(ids[-1]) + 2, device=contexts.device)
        return exploration.inverse_gap(self._oracle.predict(contexts), self.schedule.gamma(t, K)[:, None])

    def _absorb(self, rounds: Interactions) -> Tensor:
        if self.exploring:
            self._explore(self._store, rounds)
            return torch.full((len(rounds),), torch.nan, device=rounds.actions.device)
        decoded = self._decode(rounds)
        self._oracle.update(rounds.contexts, rounds.actions, decoded)
        return decoded

    def _ground(self, rounds: Interactions) -> None:
        self.fit_quality = self._inverse.fit(rounds)
        decoded = self._trusted(self.fit_quality, rounds)
        self._oracle.warm_up(rounds.contexts, rounds.actions, decoded, self._inverse.context_encoder)

    def _values(self, contexts: Tensor) -> Tensor:
        if self.exploring:
            raise NotFittedError("there is no policy yet: feedback to the exploration rounds is needed first")
        return self._oracle.predict(contexts)

    def _parts(self) -> dict[str, dict[str, Tensor]]:
        return {"oracle": self._oracle.tensors(), "store": self._store.tensors()}

    def _restore_parts(self, parts: Mapping[str, Mapping[str, Tensor]]) -> None:
        self._oracle.restore(parts["oracle"])
        self._store.restore(parts["store"], self.models.device)
