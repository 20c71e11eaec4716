"""Small worlds whose every probability is known: they meet the paper's assumptions exactly, so its theorems apply.

Contexts, actions and feedback are indices 0..X-1, 0..K-1 and 0..Y-1; a world is a handful of tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import torch
from torch import Tensor

from tacit.decoder import Decoder, G, posterior, sigma_of
from tacit.encoders import Category, Problem
from tacit.environments.base import Arrival, Environment, HeldOut
from tacit.errors import IdentifiabilityError, InvalidInputError
from tacit.exploration import draw
from tacit.interactions import HiddenReward, check_actions
from tacit.inverse.finite import check_classes
from tacit.seeding import generator

Rounds: TypeAlias = tuple[Tensor, Tensor]

TOLERANCE = 1e-9
HELD_OUT = 10_000

# Of the worlds made by hand.
# Keeps rounding from doing what only a lack of data is meant to do: push the true posterior below theta/alpha.
SLACK = 1e-6
TRAP_ALPHA, TRAP_THETA = 1.0, 0.625
RACE_ALPHA, RACE_SIGMA, RACE_ACTIONS = 2.0, 0.15, 8


@dataclass(frozen=True, eq=False)
class FiniteInstance:
    """All there is to know about a world, float64; making one checks the paper's assumptions.

    contexts (X,) how often each comes; f (X, K) expected reward; phi (X, Y) which feedback means reward 1; feedback
    (X, 2, Y) the feedback's distribution given context and reward, which does not depend on the action (Assumption 1).
    The reward can be read from the feedback (Assumption 2), and alpha and theta tell 1 from 0 (Assumption 3).
    """

    contexts: Tensor
    f: Tensor
    phi: Tensor
    feedback: Tensor
    alpha: float
    theta: float

    def __post_init__(self) -> None:
        sigma_of(self.alpha, self.theta, self.f.shape[-1])
        self._check_tables()
        if bool((self.f.sum(-1) > self.alpha + TOLERANCE).any()):
            raise IdentifiabilityError("alpha", f"in some context the rewards sum to more than {self.alpha:g}")
        if bool((self.f.amax(-1) < self.theta - TOLERANCE).any()):
            raise IdentifiabilityError("theta", f"in some context no action's reward reaches {self.theta:g}")

    @property
    def shape(self) -> tuple[int, int, int]:
        """How many contexts, feedbacks and actions there are: X, Y, K."""
        return self.f.shape[0], self.phi.shape[1], self.f.shape[1]

    @property
    def decoder(self) -> Decoder:
        return Decoder.from_assumption(self.alpha, self.theta, self.f.shape[1])

    @property
    def gaps(self) -> Tensor:
        """What each action loses against the best one, in expected reward: (X, K)."""
        return self.f.amax(-1, keepdim=True) - self.f

    @property
    def feedback_given_action(self) -> Tensor:
        """How likely each feedback is after each action: (X, K, Y)."""
        good = self.f[..., None]
        return good * self.feedback[:, None, 1] + (1 - good) * self.feedback[:, None, 0]

    @property
    def lower(self) -> Tensor:
        """Expected decoded rewards when the posterior is known (2, X, K): by the ramp, by the step decoder.

        Never above f, and equal to it for the best action: the lower bounds that Assumption 4 wants in the class.
        """
        h = posterior(self.f[:, None], self.phi)
        decoded = torch.stack([G(h, way.beta, way.sigma) for way in (self.decoder, self.decoder.step())])
        return torch.einsum("xay,dxya->dxa", self.feedback_given_action, decoded)

    def _check_tables(self) -> None:
        X, Y = len(self.f), self.phi.shape[-1]
        if self.contexts.shape != (X,) or self.phi.shape != (X, Y) or self.feedback.shape != (X, 2, Y):
            raise InvalidInputError("instance", "tables of contexts, f, phi and feedback differ in size")
        check_classes(self.f[None], self.phi[None])
        for name, table in (("contexts", self.contexts), ("feedback", self.feedback)):
            if not bool((table >= 0).all()) or bool(((table.sum(-1) - 1).abs() > TOLERANCE).any()):
                raise InvalidInputError(name, "probabilities are negative or do not sum to 1")
        meaning = torch.stack([1 - self.phi, self.phi], 1)
        if bool((self.feedback * (1 - meaning) > 0).any()):
            raise InvalidInputError("feedback", "a feedback occurs that phi reads as the opposite reward")


@dataclass(frozen=True, eq=False)
class FunctionClasses:
    """What a learner is told is possible: f (|F|, X, K) and phi (|Phi|, X, Y), the truth among them."""

    f: Tensor
    phi: Tensor

    def __post_init__(self) -> None:
        check_classes(self.f, self.phi)

    @property
    def size(self) -> int:
        """|H|, the number of posteriors that can be made of f and phi."""
        return len(self.f) * len(self.phi)


class FiniteEnvironment(Environment):
    """A world that yields rounds without end; every stream starts afresh from the seed.

    The chance in a round is drawn before its action is known: the same action meets the same reaction.
    """

    def __init__(self, instance: FiniteInstance, seed: int) -> None:
        self._instance, self._seed = instance, seed

    @property
    def problem(self) -> Problem:
        X, Y, K = self._instance.shape
        return Problem(K, Category(X), Category(Y))

    @property
    def horizon(self) -> int | None:
        return None

    @property
    def checked(self) -> bool:
        return True

    def stream(self, rounds: int, batch: int) -> Iterator[Arrival]:
        if rounds < 1 or batch < 1:
            raise InvalidInputError("rounds, batch", f"expected at least one round in a batch, got {rounds}, {batch}")
        source = generator(self._seed, "finite rounds")
        for start in range(0, rounds, batch):
            yield self._arrival(draw_rounds(self._instance, (min(batch, rounds - start),), source))

    def held_out(self) -> HeldOut:
        """Each context in its share of HELD_OUT rounds, scored by its actions' expected rewards."""
        evenly = (torch.arange(HELD_OUT, dtype=torch.float64) + 0.5) / HELD_OUT
        contexts = draw(self._instance.contexts, evenly)
        return HeldOut(contexts, lambda actions: HiddenReward(self._instance.f[contexts, actions]))

    def _arrival(self, rounds: Rounds) -> Arrival:
        contexts, uniforms = rounds

        def respond(actions: Tensor) -> tuple[Tensor, HiddenReward]:
            check_actions(actions, self._instance.shape[2])
            if actions.shape != contexts.shape:
                raise InvalidInputError("actions", f"{len(actions)} actions for {len(contexts)} contexts")
            feedback, reward = react(self._instance, contexts, actions, uniforms)
            return feedback, HiddenReward(reward)

        return Arrival(contexts, respond)


def draw_rounds(instance: FiniteInstance, shape: tuple[int, ...], source: torch.Generator) -> Rounds:
    """Contexts of the given shape and the uniform numbers (..., 2) that will decide the reactions."""
    uniforms = torch.rand(*shape, 3, generator=source, dtype=torch.float64)
    return draw(instance.contexts, uniforms[..., 0].contiguous()), uniforms[..., 1:]


def react(instance: FiniteInstance, contexts: Tensor, actions: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Feedback (...) and reward (...) for contexts (...) and actions (...), from uniform numbers (..., 2)."""
    reward = uniforms[..., 0] < instance.f[contexts, actions]
    feedback = draw(instance.feedback[contexts, reward.long()], uniforms[..., 1])
    return feedback, reward.to(instance.f)


def react_to_each(instance: FiniteInstance, contexts: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Feedback and reward (..., K) that `react` would give for each of the actions."""
    reward = uniforms[..., :1] < instance.f[contexts]
    feedback = draw(instance.feedback[contexts], uniforms[..., 1:])
    return feedback.gather(-1, reward.long()), reward.to(instance.f)


def random_instance(
    source: torch.Generator, contexts: int, actions: int, feedbacks: int, theta: float, alpha: float
) -> FiniteInstance:
    """A world drawn at random under the assumptions, one best action in each context.

    Feedback is personal: what it means is drawn for each context, and the first two contexts disagree on all of it. How
    often contexts come and how good their best actions are depends on the source, not on the number of actions.
    """
    sigma_of(alpha, theta, actions)
    if contexts < 1 or feedbacks < 2:
        raise InvalidInputError("contexts, feedbacks", f"expected at least 1 and 2, got {contexts} and {feedbacks}")
    often = 0.5 + torch.rand(contexts, generator=source, dtype=torch.float64)
    f = _random_rewards(source, contexts, actions, theta, alpha)
    order = torch.rand(contexts, feedbacks, generator=source).argsort(-1)
    phi = (order < torch.randint(1, feedbacks, (contexts, 1), generator=source)).to(torch.float64)
    phi[1:2] = 1 - phi[:1]
    likely = 0.1 + torch.rand(contexts, 2, feedbacks, generator=source, dtype=torch.float64)
    likely = likely * torch.stack([1 - phi, phi], 1)
    return FiniteInstance(often / often.sum(), f, phi, likely / likely.sum(-1, keepdim=True), alpha, theta)


def function_classes(
    instance: FiniteInstance, source: torch.Generator, rewards: int = 16, decoders: int = 64
) -> FunctionClasses:
    """Classes of the sizes asked for: decoys from far to near, and the truth last, so that every tie goes against it.

    `rewards` functions: f of other worlds, f with two actions swapped in one context, its lower bounds (Assumption 4),
    and f. `decoders` functions: anything, phi wrong about one feedback in one context, its opposite, and phi.
    """
    if rewards < 3 or decoders < 1:
        raise InvalidInputError("rewards, decoders", f"the truth needs 3 and 1 places, got {rewards} and {decoders}")
    X, Y, K = instance.shape
    swapped = [_swapped(instance, j % X, 1 + j // X) for j in range(min((rewards - 3) // 2, X * (K - 1)))]
    fill = range(rewards - 3 - len(swapped))
    others = [_random_rewards(source, X, K, instance.theta, instance.alpha) for _ in fill]
    flips = torch.eye(X * Y, dtype=torch.float64).view(-1, X, Y)
    far = torch.randint(0, 2, (decoders, X, Y), generator=source).to(torch.float64)
    phi = instance.phi[None]
    f = torch.stack([*others, *swapped, *instance.lower, instance.f])
    return FunctionClasses(f, torch.cat([far, (phi - flips).abs(), 1 - phi, phi])[-decoders:])


def step_trap(actions: int = 4, margin: float = 0.01) -> tuple[FiniteInstance, FunctionClasses]:
    """A world, and the classes to learn it with, in which the step decoder fails for want of data.

    The best action's share of reward is exactly theta/alpha, the point at which the step decoder jumps from 0 to 1.
    The class holds the true f beside others whose best reward is smaller by `margin` in one context or in both. The
    posteriors differ by less than `margin`, so on N rounds with N margin^2 small they fit about equally well, and the
    risk minimiser takes a wrong one more often than not, as Lemma 3 allows: its error is of the order of
    sqrt(log|H| / N). The step decoder then reads every reward of that context as 0 and cannot tell the actions apart,
    and more data does not help until N is far beyond 1/margin^2. The ramp reads the same rewards as 1 - margin/sigma
    at least, which hardly matters.
    """
    if actions < 3 or not 0 < margin < TRAP_THETA:
        expected = f"expected at least 3, and 0 < margin < {TRAP_THETA}"
        raise InvalidInputError("actions, margin", f"{expected}, got {actions}, {margin}")
    rest = (TRAP_ALPHA - TRAP_THETA - SLACK) / (actions - 1)
    f = _ranked([(1,), (2,)], (TRAP_THETA + SLACK,), rest, actions)
    shortfalls = torch.tensor([[margin, margin], [margin, 0.0], [0.0, margin]], dtype=torch.float64)
    near = f - shortfalls[..., None] * (f > rest)
    places = product([(place,) for place in range(actions)], repeat=2)
    far = [_ranked(place, (TRAP_THETA + SLACK,), rest, actions) for place in places if place != ((1,), (2,))]
    return _by_hand(f, TRAP_ALPHA, TRAP_THETA, [*far, *near])


def close_race(actions: int = 8, gap: float = 0.1) -> tuple[FiniteInstance, FunctionClasses]:
    """A world at the edge of the assumptions in which the second-best action is worse by `gap` only, and its classes.

    They hold every f in which the two change places, in one context or in both. To tell them apart takes some K/gap^2
    rounds. With fewer, the posterior and the policy learned are wrong about as often as right, and that costs `gap` a
    round; with many more, exploration is the cost. No gap is bad at every T, but for every T some gap is.
    sigma is the same for every number of actions.
    """
    if not 0 < gap < widest_gap(actions):
        widest = f"{widest_gap(actions):.4g}, or the second-best action would be no better than the others"
        raise InvalidInputError("gap", f"expected more than 0 and less than {widest}, got {gap}")
    theta = _race_theta(actions)
    rest = (RACE_ALPHA - 2 * theta - SLACK + gap) / (actions - 2)
    f, *near = (
        _ranked(order, (theta + SLACK, theta - gap), rest, actions)
        for order in product([(1, 2), (2, 1)], [(2, 3), (3, 2)])
    )
    far = [f.roll(shift, 1) for shift in range(1, RACE_ACTIONS - 1)]
    return _by_hand(f, RACE_ALPHA, theta, [*far, *near])


def widest_gap(actions: int) -> float:
    """What the gap of a close race must stay below."""
    return (actions * _race_theta(actions) - RACE_ALPHA) / (actions - 1)


def _race_theta(actions: int) -> float:
    if actions < RACE_ACTIONS:
        raise InvalidInputError("actions", f"expected at least {RACE_ACTIONS}, got {actions}")
    return RACE_ALPHA * (2 * RACE_SIGMA + 1 / (actions - RACE_ALPHA))


def _random_rewards(source: torch.Generator, X: int, K: int, theta: float, alpha: float) -> Tensor:
    """Expected rewards (X, K) that meet Assumption 3, one action clearly the best in each context."""
    level, spent = torch.rand(2, X, 1, generator=source, dtype=torch.float64)
    best = theta + level * (min(1.0, alpha) - theta)
    place = (torch.rand(X, 1, generator=source) * K).long()
    weights = torch.rand(X, K, generator=source, dtype=torch.float64).scatter(1, place, 0.0)
    others = ((alpha - best) * (1 + spent) / 2 * weights / weights.sum(1, keepdim=True)).clamp(max=0.9 * theta)
    f: Tensor = others.scatter(1, place, best)
    return f


def _swapped(instance: FiniteInstance, context: int, step: int) -> Tensor:
    """f with the best action's reward in one context exchanged for that of the action `step` further on."""
    f = instance.f.clone()
    best = int(f[context].argmax())
    other = (best + step) % f.shape[1]
    f[context, [best, other]] = f[context, [other, best]]
    return f


def _ranked(places: Sequence[Sequence[int]], rewards: Sequence[float], rest: float, actions: int) -> Tensor:
    """Rewards (X, K): in each context its own places have the rewards given, all other actions `rest`."""
    f = torch.full((len(places), actions), rest, dtype=torch.float64)
    return f.scatter(1, torch.tensor(places), torch.tensor(rewards, dtype=torch.float64).expand(len(places), -1))


def _by_hand(
    f: Tensor, alpha: float, theta: float, candidates: Sequence[Tensor]
) -> tuple[FiniteInstance, FunctionClasses]:
    """The world of f (2, K), and its classes: the candidates given, the lower bounds, f, and every phi.

    The truth is last, so that every tie goes against it.
    """
    phi = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    often = torch.full((2,), 0.5, dtype=torch.float64)
    instance = FiniteInstance(often, f, phi, torch.stack([1 - phi, phi], 1), alpha, theta)
    readings = torch.tensor(list(product([0.0, 1.0], repeat=phi.numel())), dtype=torch.float64).view(-1, *phi.shape)
    wrong = readings[(readings != phi).any((1, 2))]
    return instance, FunctionClasses(torch.stack([*candidates, *instance.lower, f]), torch.cat([wrong, phi[None]]))
