"""What the algorithms share: choosing, learning from late feedback, saving. What differs is in their own files."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tacit import exploration
from tacit.algorithms import saving
from tacit.algorithms.ledger import Ledger
from tacit.algorithms.models import Models
from tacit.algorithms.store import Store
from tacit.decoder import Decoder
from tacit.encoders import Problem
from tacit.errors import InvalidInputError, UntrustworthyDecoderError
from tacit.health import Health, Sample, Subject, examine
from tacit.interactions import (
    Decision,
    Ids,
    Interactions,
    as_tensor,
    check_actions,
    check_count,
    check_kind,
    check_whole,
)
from tacit.inverse import Fit
from tacit.seeding import generator


class Learner(ABC):
    """Chooses actions and learns from feedback alone."""

    def __init__(self, problem: Problem, models: Models, decoder: Decoder | None, seed: int) -> None:
        check_kind(models, Models, "models")
        self.problem = problem
        self.models = models
        self.seed = seed = check_whole(seed, 0, "seed")
        # One action out of K is right and always rewarded, unless told otherwise.
        self.decoder = Decoder.widest(1, 1, problem.actions) if decoder is None else decoder
        check_kind(self.decoder, Decoder, "decoder")
        self.fit_quality: Fit | None = None
        self.ledger = Ledger()
        self._sample = Sample()
        self._draws = generator(seed, "draws", models.device)
        self._training = generator(seed, "training", models.device)
        self._inverse = models.inverse(problem, self._training)
        self._grounded = False

    def choose(self, contexts: object) -> Decision:
        """One action per context (n, ...), drawn; each with the probabilities it was drawn from."""
        # A copy, because the decision waits for its feedback and the caller may use the memory again.
        shown = self._checked_contexts(contexts).clone()
        ids = self.ledger.issue(len(shown))
        probabilities = self._probabilities(shown.to(self.models.device), ids)
        numbers = torch.rand(len(shown), generator=self._draws, device=self.models.device)
        actions = exploration.draw(probabilities, numbers)
        return Decision(
            self.ledger.stream, ids, shown, actions.to(shown.device), probabilities.to(shown.device)
        )

    def learn(self, decision: Decision, feedback: object) -> Tensor:
        """Learn from feedback (n, ...) to a decision or a part of one, whenever it comes.

        Returns decoded rewards (n,): NaN where none was decoded, because the learner still explores or because
        the decision had its feedback already (it counts once).
        """
        self._check_decision(decision)
        seen = as_tensor(feedback, "feedback")
        self.problem.feedback.check(seen, "feedback")
        self.problem.feedback.check_range(seen, "feedback")
        check_count(seen, len(decision), "feedback")
        fresh = self.ledger.fresh(decision.stream, decision.ids)
        decoded = torch.full((len(decision),), torch.nan, device=self.models.device)
        if not fresh.any():
            return decoded.to(decision.actions.device)
        whole = bool(fresh.all())
        rows: slice | Tensor = slice(None) if whole else torch.from_numpy(np.flatnonzero(fresh))
        part = decision if whole else decision[fresh]
        rounds = Interactions(part.contexts, part.actions, part.probabilities, seen[rows]).to(self.models.device)
        decoded[rows] = learned = self._absorb(rounds).to(decoded)
        self._sample.add(rounds, learned)
        # Settled last: feedback that could not be learned from may be given again.
        self.ledger.settle(part.ids)
        return decoded.to(decision.actions.device)

    def greedy(self, contexts: object) -> Tensor:
        """The best action per context (n,) as far as is known; explores nothing and remembers nothing."""
        shown = self._checked_contexts(contexts)
        return self._values(shown.to(self.models.device)).argmax(-1).to(shown.device)

    def health(self) -> Health:
        """Whether the decoded reward can be trusted, and why, from observed data alone; print it.

        Takes about as long as the inverse model took to learn: it is learned twice more, on half of the uniform rounds
        kept each time, so that nothing is judged by what was learned from it.
        """
        subject = Subject(
            self.problem, self.decoder, self.fit_quality, self._inverse,
            lambda source: self.models.inverse(self.problem, source),
            None if self.exploring else self._values, self.seed,
        )  # fmt: skip
        return examine(subject, self._sample)

    @property
    def exploring(self) -> bool:
        """Whether actions are still drawn uniformly, because there is no decoder yet that can be trusted."""
        return not self._grounded

    @abstractmethod
    def settings(self) -> dict[str, object]:
        """What the constructor was told, beyond problem, decoder, models and seed."""

    @abstractmethod
    def _probabilities(self, contexts: Tensor, ids: Ids) -> Tensor:
        """(n, K) for the decisions numbered `ids`."""

    @abstractmethod
    def _absorb(self, rounds: Interactions) -> Tensor:
        """Learn from rounds that are new and checked; decoded rewards (n,), NaN where there are none."""

    @abstractmethod
    def _ground(self, rounds: Interactions) -> None:
        """Learn to decode, and what to do, from uniform rounds; UntrustworthyDecoderError if they do not tell."""

    @abstractmethod
    def _values(self, contexts: Tensor) -> Tensor:
        """(n, K): the highest of each row is the greedy action."""

    @abstractmethod
    def _parts(self) -> dict[str, dict[str, Tensor]]:
        """The tensors that this algorithm holds beyond the shared ones, by part."""

    @abstractmethod
    def _restore_parts(self, parts: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Take back what `_parts` gave."""

    def save(self, folder: str | Path) -> None:
        """Write all that was learned; a save that fails leaves the old one. `tacit.load` reads it."""
        saving.save(self, Path(folder))

    def parts(self) -> dict[str, dict[str, Tensor]]:
        """Every tensor there is to save, by part."""
        return {
            "inverse": self._inverse.tensors(),
            "ledger": self.ledger.tensors(),
            "generators": {"draws": self._draws.get_state(), "training": self._training.get_state()},
            "progress": {"grounded": torch.tensor(self._grounded)},
            "sample": self._sample.tensors(),
        } | self._parts()

    def restore(self, parts: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Take back what `parts` gave; the ledger is restored from its own document."""
        _resume(self._draws, parts["generators"]["draws"])
        _resume(self._training, parts["generators"]["training"])
        self._grounded = bool(parts["progress"]["grounded"])
        # A model that was never fitted has no tensors, so there is no such part.
        self._inverse.restore(parts["inverse"] if self._grounded else parts.get("inverse", {}))
        self._sample = Sample.restored(parts.get("sample", {}), self.models.device)
        self._restore_parts(parts)

    def _checked_contexts(self, contexts: object) -> Tensor:
        shown = as_tensor(contexts, "contexts")
        self.problem.context.check(shown, "contexts")
        self.problem.context.check_range(shown, "contexts")
        if not len(shown):
            raise InvalidInputError("contexts", "there are none: nothing to choose for")
        return shown

    def _check_decision(self, decision: Decision) -> None:
        """Refuse what `choose` cannot have given: kept with the other rounds, it would spoil them all."""
        if not isinstance(decision, Decision):
            raise InvalidInputError("decision", f"expected what choose gave, got {type(decision).__name__}")
        columns = (decision.contexts, decision.actions, decision.probabilities)
        if not all(isinstance(column, Tensor) for column in columns) or not isinstance(decision.ids, np.ndarray):
            raise InvalidInputError("decision", "expected tensors, and ids as a numpy array, as choose gives them")
        n = len(decision)
        for column, name in zip(columns, ("contexts", "actions", "probabilities"), strict=True):
            check_count(column, n, f"decision.{name}")
        if decision.probabilities.shape != (n, self.problem.actions):
            expected, found = (n, self.problem.actions), tuple(decision.probabilities.shape)
            raise InvalidInputError("decision.probabilities", f"expected shape {expected}, got {found}")
        self.problem.context.check(decision.contexts, "decision.contexts")
        self.problem.context.check_range(decision.contexts, "decision.contexts")
        check_actions(decision.actions, self.problem.actions)

    def _decode(self, rounds: Interactions) -> Tensor:
        return self.decoder.decode(self._inverse.posterior(rounds.contexts, rounds.feedback), rounds.actions)

    def _explore(self, store: Store, rounds: Interactions) -> None:
        """Keep uniform rounds, and learn from them once there are enough; warn and go on if they do not tell."""
        with store.added(rounds):
            if store.due:
                try:
                    self._ground(store.rounds())
                except UntrustworthyDecoderError as doubt:
                    self._postpone(store, doubt)
                else:
                    self._grounded = True
                    store.clear()

    def _postpone(self, store: Store, doubt: UntrustworthyDecoderError) -> None:
        store.postpone(doubt)

    def _trusted(self, fit: Fit, rounds: Interactions) -> Tensor:
        """Decoded rewards (n,), or an UntrustworthyDecoderError if acting on them would be guessing."""
        if not fit.better_than_chance:
            raise UntrustworthyDecoderError(
                f"the feedback does not tell which action was taken: {fit}. Either the rounds are too few, or the "
                "feedback does not depend on the reward, or reward 1 is not the rarer event"
            )
        decoded = self._decode(rounds)
        if not decoded.any():
            raise UntrustworthyDecoderError(
                f"the feedback tells actions apart ({fit}), yet none of {len(rounds)} rounds is decoded as rewarded: "
                f"the ramp starts at {self.decoder.beta:.3g}, and no posterior reaches it. Give a decoder with a "
                "smaller theta/alpha, or more rounds"
            )
        return decoded


def _resume(source: torch.Generator, state: Tensor) -> None:
    """Go on from a saved state; on another kind of device, whose states have another form, from a seed made of it."""
    if state.shape == source.get_state().shape:
        source.set_state(state)
    else:
        source.manual_seed(int.from_bytes(hashlib.sha256(state.numpy().tobytes()).digest()[:7], "big"))
