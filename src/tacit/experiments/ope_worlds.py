"""Logs of finite worlds, written by policies that stay as they are or learn, and what is to be judged by them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from tacit.algorithms import FiniteClasses, OnPolicy
from tacit.decoder import Decoder, G
from tacit.environments.finite import FiniteInstance, draw_rounds, function_classes, random_instance, react
from tacit.exploration import draw
from tacit.interactions import Interactions
from tacit.inverse import FiniteInverse

CONTEXTS, ACTIONS, FEEDBACKS = 6, 5, 4
THETA, ALPHA = 0.7, 1.0
EPSILON = 0.2
EXPLORE, BATCH = 200, 50  # the uniform rounds of the learner that changes, and how many it plays before it learns


@dataclass(frozen=True, eq=False)
class World:
    """A run's world, and what was learned in it before the log began: h (X, Y, K), predictions and policies (X, K)."""

    instance: FiniteInstance
    models: FiniteClasses
    decoder: Decoder
    h: Tensor
    predictions: Tensor
    policies: dict[str, Tensor]

    def posteriors(self, rounds: Interactions) -> Tensor:
        return self.h[rounds.contexts, rounds.feedback]

    def hidden_value(self, policy: Tensor) -> float:
        return float(self.instance.contexts @ (policy * self.instance.f).sum(1))

    def decoded_value(self, policy: Tensor) -> float:
        decoded = G(self.h, self.decoder.beta, self.decoder.sigma)
        expected = torch.einsum("xay,xya->xa", self.instance.feedback_given_action, decoded)
        return float(self.instance.contexts @ (policy * expected).sum(1))


def learn_world(learn_from: int, realisable: bool, source: torch.Generator) -> World:
    """A world, and what so many uniform rounds taught about it.

    Unless `realisable`, the class lacks the true meaning of feedback, and every posterior in it is wrong somewhere.
    """
    instance = random_instance(source, CONTEXTS, ACTIONS, FEEDBACKS, THETA, ALPHA)
    everything = function_classes(instance, source)
    wrong = (everything.phi != instance.phi).any((1, 2))
    classes = FiniteClasses(everything.f, everything.phi if realisable else everything.phi[wrong])
    rounds = record(instance, uniform(instance), learn_from, source)
    inverse = FiniteInverse(classes.f, classes.phi)
    inverse.fit(rounds)
    X, Y, K = instance.shape
    contexts, feedback = (index.flatten() for index in torch.meshgrid(torch.arange(X), torch.arange(Y), indexing="ij"))
    h = inverse.posterior(contexts, feedback).view(X, Y, K)
    decoded = instance.decoder.decode(h[rounds.contexts, rounds.feedback], rounds.actions)
    cell = rounds.contexts * K + rounds.actions
    totals, counts = (
        decoded.new_zeros(X * K).index_add(0, cell, values) for values in (decoded, torch.ones_like(decoded))
    )
    predictions = (totals / counts.clamp(min=1)).view(X, K)
    policies = {
        "learned": functional.one_hot(predictions.argmax(1), K).double(),
        "other": (2 * torch.randn(X, K, generator=source, dtype=torch.float64)).softmax(1),
    }
    return World(instance, classes, instance.decoder, h, predictions, policies)


def uniform(instance: FiniteInstance) -> Tensor:
    """The policy (X, K) that draws every action alike."""
    return torch.full_like(instance.f, 1 / instance.shape[2])


def record(instance: FiniteInstance, policy: Tensor, rounds: int, source: torch.Generator) -> Interactions:
    """A log of a policy (X, K) that stays as it is."""
    contexts, uniforms = draw_rounds(instance, (rounds,), source)
    probabilities = policy[contexts]
    actions = draw(probabilities, torch.rand(rounds, generator=source, dtype=torch.float64))
    return Interactions(contexts, actions, probabilities, react(instance, contexts, actions, uniforms)[0])


def record_learning(world: World, rounds: int, seed: int, source: torch.Generator) -> Interactions:
    """A log of a learner that changes while it writes it."""
    problem = world.models.problem
    learner = OnPolicy(
        problem.actions, problem.context, problem.feedback, explore=EXPLORE, decoder=world.decoder,
        models=world.models, seed=seed,
    )  # fmt: skip
    batches = []
    for start in range(0, rounds, BATCH):
        contexts, uniforms = draw_rounds(world.instance, (min(BATCH, rounds - start),), source)
        decision = learner.choose(contexts)
        feedback, _ = react(world.instance, contexts, decision.actions, uniforms)
        learner.learn(decision, feedback)
        batches.append(Interactions(contexts, decision.actions, decision.probabilities, feedback))
    return Interactions.concatenate(batches)


def epsilon_greedy(world: World, source: torch.Generator) -> Tensor:
    """A policy (X, K) whose greedy action is right in about half of the contexts, and anything in the others."""
    X, _, K = world.instance.shape
    guesses = torch.randint(K, (X,), generator=source)
    right = torch.rand(X, generator=source) < 0.5
    greedy = functional.one_hot(torch.where(right, world.instance.f.argmax(1), guesses), K)
    return EPSILON / K + (1 - EPSILON) * greedy.double()
