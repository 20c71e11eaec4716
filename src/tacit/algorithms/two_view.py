"""tacit's own algorithm: as Algorithm 2, and the decoder is refined while acting, by two views of one hidden reward.

| here            | meaning                                                                                       |
|-----------------|-----------------------------------------------------------------------------------------------|
| _ground         | Algorithm 2, lines 1-3: h from uniform rounds, but for the anchor, which nothing learns from   |
| _inverse        | h(x, y), the anchored decoder: what is decoded before the first refinement, and the fallback  |
| _oracle         | f(x, a): the first view of the reward, through context and action                            |
| _reward         | phi(x, y): the second view, through context and feedback                                      |
| _refine         | both views agree on a round: an example for phi, by which all rounds are decoded again for f  |
| _compared       | the posterior of f and phi, Eq. (1), against h: which foretells the anchor's actions better?  |

Feedback is independent of the action given context and reward, so that the views err independently, and where they
agree they are seldom wrong. docs/algorithms/two_view.md has the reasoning, and says when it goes wrong.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from tacit import exploration
from tacit.algorithms.learner import Learner
from tacit.algorithms.memory import CAPACITY, Memory
from tacit.algorithms.models import Models, Networks
from tacit.algorithms.store import Store
from tacit.decoder import Decoder, G, posterior
from tacit.encoders import Problem, Space
from tacit.errors import DecoderWarning, InvalidInputError, NotFittedError, UntrustworthyDecoderError
from tacit.exploration import Schedule, SquareRoot
from tacit.interactions import Ids, Interactions, check_kind, check_positive_count

BETA, SIGMA = 0.1, 0.8  # the ramp of phi
ANCHOR_EVERY, ANCHOR_MOST = 10, 500  # one uniform round in so many is kept apart, up to so many
FEWEST = 20  # examples of good rounds, and of bad ones, without which there is no refinement
CERTAIN = 3.0  # standard errors by which a refinement must be worse to be worth a warning
NEGLIGIBLE = 1e-3  # in loss: no wrong decoder is worse by so little, but rounding is, where h is exact
CHUNK = 2_000  # rows at a time where nothing is learned
STRENGTH = 16.0  # of exploitation: gamma_t = STRENGTH sqrt(K t)

# explore="auto": first after FIRST K uniform rounds, then whenever there are twice as many, the learner asks whether it
# knows a good action nearly everywhere.
FIRST, LAST = 200, 800
KNOWN, BEST = 0.75, 0.9  # of what the best known tenth of the contexts promises, on average over all contexts
HOLE, HOLES = 0.2, 0.05  # contexts that promise less than this of it, and how many of them there may be
GAINED = 0.02  # less than this from twice the rounds: no use in waiting


@dataclass(frozen=True)
class Refinement:
    """What came of a refinement after so many `rounds`, from so many examples of `good` and `bad` ones.

    `excess` is how much worse the refined decoder foretells the actions of the anchor than the anchored one, in squared
    loss by round, and `error` its standard error. The refinement is `kept` if it is no worse.
    """

    rounds: int
    good: int
    bad: int
    excess: float
    error: float

    @property
    def kept(self) -> bool:
        return self.excess <= 0

    @property
    def contradicts(self) -> bool:
        """Worse beyond chance: one of the decoders is wrong, and so may be the assumptions."""
        return self.excess > max(CERTAIN * self.error, NEGLIGIBLE)

    def __str__(self) -> str:
        verdict = "kept" if self.kept else "dropped"
        return (
            f"refined after {self.rounds:,} rounds, {verdict}: {self.excess:+.4f} in loss against the anchored decoder "
            f"(standard error {self.error:.4f}), from {self.good:,} good and {self.bad:,} bad rounds"
        )


class TwoView(Learner):
    """Explores as long as it has to (or `explore` rounds), acts, and goes on learning what feedback means.

    After twice as many rounds, four times, eight times, ... the decoder is refined. A refinement is used only if it is
    no worse than what was learned from uniform rounds; if it contradicts that beyond chance, there is a warning.
    """

    def __init__(
        self, actions: int, context: Space, feedback: Space, *, explore: int | Literal["auto"] = "auto",
        decoder: Decoder | None = None, schedule: Schedule | None = None, models: Models | None = None, seed: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(Problem(actions, context, feedback), Networks() if models is None else models, decoder, seed)
        self.explore = _explore(explore)
        self.schedule = SquareRoot(STRENGTH) if schedule is None else schedule
        check_kind(self.schedule, Schedule, "schedule")
        self.refinement: Refinement | None = None
        self._oracle = self.models.oracle(self.problem, self._training)
        self._reward = self.models.reward(self.problem, self._training)
        enough = FIRST * self.problem.actions if self.explore == "auto" else int(self.explore)
        self._store = Store(enough, self.problem, CAPACITY if self.explore == "auto" else None)
        self._memory = Memory(self.problem)
        self._anchor: Interactions | None = None
        self._seen = self._due = 0  # rounds learned; when to refine next
        self._known = 0.0  # of what the best known contexts promise, at the last attempt
        self._refined = False

    def settings(self) -> dict[str, object]:
        return {"explore": self.explore, "schedule": self.schedule}

    @property
    def explored(self) -> int:
        """How many uniform rounds it has learned from."""
        return self._store.seen

    def _probabilities(self, contexts: Tensor, ids: Ids) -> Tensor:
        K = self.problem.actions
        if self.exploring:
            return exploration.uniform(len(contexts), K, contexts.device)
        t = torch.arange(int(ids[0]) + 1, int(ids[-1]) + 2, device=contexts.device)
        return exploration.inverse_gap(self._oracle.predict(contexts), self.schedule.gamma(t, K)[:, None])

    def _absorb(self, rounds: Interactions) -> Tensor:
        if self.exploring:
            self._explore(self._store, rounds)
            self._seen = self.explored
            self._due = 2 * self._seen
            return torch.full((len(rounds),), torch.nan, device=rounds.actions.device)
        decoded = self._decode(rounds)
        self._oracle.update(rounds.contexts, rounds.actions, decoded)
        self._memory.add(rounds, decoded)
        self._seen += len(rounds)
        if self._seen >= self._due:
            self._due = 2 * self._seen
            self._refine()
        return decoded

    def _ground(self, rounds: Interactions) -> None:
        numbers = torch.arange(len(rounds), device=rounds.actions.device)
        apart = (numbers % ANCHOR_EVERY == 0) & (numbers < ANCHOR_EVERY * ANCHOR_MOST)
        self._anchor, rounds = rounds[apart.nonzero()[:, 0]], rounds[(~apart).nonzero()[:, 0]]
        if not len(rounds):
            raise UntrustworthyDecoderError("a single round is too few to learn from")
        self.fit_quality = self._inverse.fit(rounds, self._anchor)
        decoded = self._trusted(self.fit_quality, rounds)
        self._oracle = self.models.oracle(self.problem, self._training)
        self._oracle.warm_up(rounds.contexts, rounds.actions, decoded, self._inverse.context_encoder)
        self._memory.begin(rounds, decoded)
        if self.explore == "auto":
            self._check_known(self._anchor.contexts)

    def _check_known(self, contexts: Tensor) -> None:
        """Refuse to act while a good action is not known nearly everywhere, unless waiting brings no more of them."""
        best = self._all_values(contexts).amax(1)
        best = best / best.quantile(BEST)
        before, self._known = self._known, float(best.mean())
        enough = self._known >= KNOWN and float((best < HOLE).float().mean()) <= HOLES
        if not enough and self._known - before > GAINED:
            raise UntrustworthyDecoderError(
                f"a good action is known for {100 * self._known:.0f} % of contexts only, and more exploration helps"
            )

    def _postpone(self, store: Store, doubt: UntrustworthyDecoderError) -> None:
        if self.explore == "auto" and store.seen < LAST * self.problem.actions:
            store.wait(2)
        else:
            store.postpone(doubt)

    def _decode(self, rounds: Interactions) -> Tensor:
        if not self._refined:
            return super()._decode(rounds)
        return G(self._reward.predict(rounds.contexts, rounds.feedback), BETA, SIGMA)

    def _refine(self) -> None:
        rounds, decoded = self._memory.rounds()
        chosen = self._all_values(rounds.contexts).argmax(1) == rounds.actions
        good, bad = (chosen & (decoded >= 0.5)).nonzero()[:, 0], (~chosen & (decoded < 0.5)).nonzero()[:, 0]
        if min(len(good), len(bad)) < FEWEST:
            return
        self._reward.fit(rounds[good], rounds[bad], self._inverse.encoders)
        self.refinement = Refinement(self._seen, len(good), len(bad), *self._compared())
        self._refined = self.refinement.kept
        if self.refinement.contradicts:
            self._reward = self.models.reward(self.problem, self._training)
        decoded = torch.cat([self._decode(rounds[slice(at, at + CHUNK)]) for at in range(0, len(rounds), CHUNK)])
        self._memory.redecode(decoded)
        self._oracle.relearn(rounds.contexts, rounds.actions, decoded)
        if self.refinement.contradicts:
            # Last, as a warning may be made an error. It points at the call of `learn`, four calls up.
            warnings.warn(
                f"{self.refinement}. Going on with the anchored decoder; ask health() what may have changed",
                DecoderWarning, stacklevel=4,
            )  # fmt: skip

    def _compared(self) -> tuple[float, float]:
        """How much worse f and phi foretell the anchor's actions than h does, in squared loss, and its standard error.

        Both answer with a posterior, whose squared loss is least, on average, for the truth. A phi that calls
        everything good leaves f / sum f, one that is turned round (1 - f) / (K - sum f): both are far worse than h.
        """
        assert self._anchor is not None
        x, y, a = self._anchor.contexts, self._anchor.feedback, self._anchor.actions
        phi = G(self._reward.predict(x, y), BETA, SIGMA)
        f = self._all_values(x).clamp(1e-3, 1 - 1e-3)
        taken = functional.one_hot(a, self.problem.actions)
        refined, anchored = (
            (h - taken).square().sum(1) for h in (posterior(f, phi.to(f)), self._inverse.posterior(x, y))
        )
        excess = refined - anchored
        return float(excess.mean()), float(excess.std()) / len(excess) ** 0.5

    def _values(self, contexts: Tensor) -> Tensor:
        if self.exploring:
            raise NotFittedError("there is no policy yet: feedback to the exploration rounds is needed first")
        return self._oracle.predict(contexts)

    def _all_values(self, contexts: Tensor) -> Tensor:
        return torch.cat([self._oracle.predict(part) for part in contexts.split(CHUNK)])

    def _parts(self) -> dict[str, dict[str, Tensor]]:
        anchor = {} if self._anchor is None else {f.name: getattr(self._anchor, f.name) for f in fields(self._anchor)}
        own = {"progress": torch.tensor([self._seen, self._due, self._known, self._refined], dtype=torch.float64)}
        if self.refinement is not None:
            own["refinement"] = torch.tensor(astuple(self.refinement), dtype=torch.float64)
        return {
            "oracle": self._oracle.tensors(), "reward": self._reward.tensors(), "store": self._store.tensors(),
            "memory": self._memory.tensors(), "anchor": anchor, "two_view": own,
        }  # fmt: skip

    def _restore_parts(self, parts: Mapping[str, Mapping[str, Tensor]]) -> None:
        device = self.models.device
        self._oracle.restore(parts["oracle"])
        self._reward.restore(parts.get("reward", {}))
        self._store.restore(parts["store"], device)
        self._memory.restore(parts.get("memory", {}), device)
        anchor = parts.get("anchor", {})
        self._anchor = Interactions(*(anchor[f.name] for f in fields(Interactions))).to(device) if anchor else None
        seen, due, self._known, refined = parts["two_view"]["progress"].tolist()
        self._seen, self._due, self._refined = int(seen), int(due), bool(refined)
        found = parts["two_view"].get("refinement")
        self.refinement = None if found is None else Refinement(*(int(n) for n in found[:3]), *found[3:].tolist())


def _explore(value: object) -> int | Literal["auto"]:
    if isinstance(value, str) and value == "auto":
        return "auto"
    try:
        return check_positive_count(value, "explore")
    except InvalidInputError as error:
        expected = 'expected "auto", or a whole number of rounds, at least 1'
        raise InvalidInputError("explore", f"{expected}, got {value!r}") from error
