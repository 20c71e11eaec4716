"""Small worlds to learn in, whose truth is known, and what tests do with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
from torch import Tensor

import tacit
from tacit.encoders import Problem
from tacit.environments import Arrival, Environment, HeldOut
from tacit.environments.classification import Classification, Labelled, Signs
from tacit.environments.finite import FiniteEnvironment, FiniteInstance, function_classes
from tacit.exploration import draw, inverse_gap
from tacit.inverse import InverseTraining
from tacit.oracles import OracleTraining

BEST = (1, 3, 0)  # the best action in each context of `instance`

# Enough for the small worlds here, and quick.
INVERSE = InverseTraining(contrast_steps=20, steps=300, interval=16, batch=64)
ORACLE = OracleTraining(replay=1, warm_up=100, batch=64, capacity=500)


def instance() -> FiniteInstance:
    """Three contexts, four actions, the best rewarded nine times in ten; each context has its own signs of content."""
    best = torch.nn.functional.one_hot(torch.tensor(BEST), 4).double()
    f = 0.9 * best + 0.1 / 3 * (1 - best)
    phi = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    meant = torch.stack([1 - phi, phi], 1) * torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    often = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    return FiniteInstance(often, f, phi, meant / meant.sum(-1, keepdim=True), alpha=1.0, theta=0.9)


def certain() -> FiniteInstance:
    """As `instance`, but the best action is always rewarded and no other ever is."""
    world = instance()
    f = torch.nn.functional.one_hot(torch.tensor(BEST), 4).double()
    return FiniteInstance(world.contexts, f, world.phi, world.feedback, alpha=1.0, theta=1.0)


def finite(seed: int = 0) -> FiniteEnvironment:
    return FiniteEnvironment(instance(), seed)


def classes() -> tacit.FiniteClasses:
    """The truth of `instance` among decoys."""
    made = function_classes(instance(), torch.Generator().manual_seed(5), rewards=8, decoders=16)
    return tacit.FiniteClasses(made.f, made.phi)


def signs(seed: int = 0, examples: int = 4_000) -> Classification:
    """Rows of four noisy numbers, the largest of which is the right action; every class has signs of its own."""
    source = torch.Generator().manual_seed(11)
    labels = torch.randint(4, (examples + 400,), generator=source)
    rows = 3 * torch.nn.functional.one_hot(labels, 4) + 0.5 * torch.randn(len(labels), 4, generator=source)
    everything = Labelled(rows, labels, classes=4)
    rule = Signs.personal(4, torch.Generator().manual_seed(3))
    return Classification(everything[400:], everything[:400], tacit.Table(4), rule, seed)


def networks(inverse: InverseTraining = INVERSE, oracle: OracleTraining = ORACLE) -> tacit.Networks:
    return tacit.Networks(inverse, oracle, on="cpu")


def on_policy(
    environment: Environment, models: tacit.Models, explore: int | tacit.Horizon = 400, **settings: Any
) -> tacit.OnPolicy:
    problem = environment.problem
    return tacit.OnPolicy(
        problem.actions, problem.context, problem.feedback, explore=explore, models=models, **settings
    )


def off_policy(
    environment: Environment, models: tacit.Models, explore: int | tacit.Horizon | None = 400, **settings: Any
) -> tacit.OffPolicy:
    problem = environment.problem
    return tacit.OffPolicy(
        problem.actions, problem.context, problem.feedback, explore=explore, models=models, **settings
    )


def two_view(
    environment: Environment, models: tacit.Models, explore: int | Literal["auto"] = 400, **settings: Any
) -> tacit.TwoView:
    problem = environment.problem
    return tacit.TwoView(
        problem.actions, problem.context, problem.feedback, explore=explore, models=models, **settings
    )


def uniform_log(environment: Environment, rounds: int, seed: int = 0) -> tacit.Interactions:
    """What a uniform policy would have logged."""
    K = environment.problem.actions
    arrival = next(environment.stream(rounds, rounds))
    actions = torch.randint(K, (rounds,), generator=torch.Generator().manual_seed(seed))
    feedback, _ = arrival.react(actions)
    return tacit.Interactions.of(
        contexts=arrival.contexts, actions=actions, probabilities=torch.full((rounds, K), 1 / K), feedback=feedback
    )


def log_of(
    environment: Environment, policy: Callable[[Tensor], Tensor], rounds: int, seed: int = 0
) -> tacit.Interactions:
    """What a policy would have logged that draws from `policy(contexts)`, (n, K)."""
    arrival = next(environment.stream(rounds, rounds))
    probabilities = policy(arrival.contexts)
    actions = draw(probabilities, torch.rand(rounds, generator=torch.Generator().manual_seed(seed)))
    feedback, _ = arrival.react(actions)
    return tacit.Interactions.of(
        contexts=arrival.contexts, actions=actions, probabilities=probabilities, feedback=feedback
    )


def stubborn(contexts: Tensor) -> Tensor:
    """Action 2, which is never the best in `instance`, in seven rounds of ten; else uniform."""
    return torch.tensor([0.075, 0.075, 0.775, 0.075]).expand(len(contexts), 4)


def hardening(contexts: Tensor) -> Tensor:
    """Inverse-gap weighting that thinks the worse the better, ever more surely."""
    values = 1 - instance().f[contexts].float()
    return inverse_gap(values, (4 * torch.arange(1, len(contexts) + 1.0)).sqrt()[:, None])


def noise(rounds: tacit.Interactions, seed: int = 0) -> tacit.Interactions:
    """The same rounds with each other's feedback."""
    order = torch.randperm(len(rounds), generator=torch.Generator().manual_seed(seed))
    return tacit.Interactions(rounds.contexts, rounds.actions, rounds.probabilities, rounds.feedback[order])


class Noise(Environment):
    """Another environment's contexts, and feedback that depends on nothing."""

    def __init__(self, environment: Environment, seed: int = 0) -> None:
        self._environment, self._seed = environment, seed

    @property
    def problem(self) -> Problem:
        return self._environment.problem

    @property
    def horizon(self) -> int | None:
        return self._environment.horizon

    def stream(self, rounds: int, batch: int) -> Iterator[Arrival]:
        source = torch.Generator().manual_seed(self._seed)
        for arrival in self._environment.stream(rounds, batch):
            yield Arrival(arrival.contexts, lambda actions: self._answer(len(actions), source))

    def held_out(self) -> HeldOut:
        return self._environment.held_out()

    def _answer(self, count: int, source: torch.Generator) -> tuple[Tensor, tacit.HiddenReward]:
        feedback = self.problem.feedback
        assert isinstance(feedback, tacit.Category)
        return torch.randint(feedback.count, (count,), generator=source), tacit.HiddenReward(torch.zeros(count))


def play(learner: tacit.Learner, environment: Environment, rounds: int, batch: int = 50) -> Tensor:
    """Act and learn for so many rounds; the decoded rewards (rounds,)."""
    decoded = []
    for arrival in environment.stream(rounds, batch):
        decision = learner.choose(arrival.contexts)
        feedback, _ = arrival.react(decision.actions)
        decoded.append(learner.learn(decision, feedback))
    return torch.cat(decoded)
