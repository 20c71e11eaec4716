"""Small worlds, healthy ones and ones that break an assumption each, to see whether health tells them apart.

A scene is contexts, the expected reward of every action in them, and what feedback people then give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from tacit.decoder import Decoder
from tacit.encoders import Category, Image, Space, Table
from tacit.environments.classification import FeedbackRule, Labelled, Neighbour, Signs
from tacit.exploration import draw
from tacit.seeding import generator

ROUNDS = 2_900  # a learner that cannot decode tries once
EXPLORE = 2_000
BATCH = 50
SIGNS = 6


@dataclass(frozen=True, eq=False)
class Reactions:
    """What is known when people react to rounds: their rows in the scene, actions and rewards (n,), and chance."""

    rows: Tensor
    actions: Tensor
    rewards: Tensor
    source: torch.Generator

    def chance(self) -> Tensor:
        """A uniform number per round (n,)."""
        return torch.rand(len(self.rows), generator=self.source)


Feedback: TypeAlias = Callable[[Reactions], Tensor]


@dataclass(frozen=True, eq=False)
class Scene:
    """Contexts (n, ...), expected rewards (n, K), and the feedback that follows.

    `drawn` (n, K), if given, are the probabilities that actions were really drawn with in a log that says uniform.
    """

    context: Space
    contexts: Tensor
    rewards: Tensor
    feedback: Space
    react: Feedback
    explore: int = EXPLORE
    decoder: Decoder | None = None
    drawn: Tensor | None = None
    log: bool = False

    @property
    def actions(self) -> int:
        return self.rewards.shape[1]

    def reactions(self, rows: Tensor, actions: Tensor, source: torch.Generator) -> Tensor:
        """Feedback (n, ...) to actions (n,) in the rounds numbered `rows` (n,)."""
        chances = self.rewards[rows, actions]
        rewards = (torch.rand(len(rows), generator=source) < chances).long()
        return self.react(Reactions(rows, actions, rewards, source))


@dataclass(frozen=True)
class World:
    """A scene by seed, and whether something is wrong with it."""

    broken: bool
    about: str
    make: Callable[[torch.Generator], Scene] = field(repr=False)


def table(
    source: torch.Generator, K: int = 5, rounds: int = ROUNDS, right: float = 1.0, wrong: float = 0.0,
    shares: Tensor | None = None,
) -> Scene:  # fmt: skip
    """Rows of noisy numbers, the largest of which is the right action; what signs mean depends on the right action."""
    shares = torch.ones(K) if shares is None else shares
    labels = torch.multinomial(shares, rounds, replacement=True, generator=source)
    contexts = 3 * functional.one_hot(labels, K) + 0.5 * torch.randn(rounds, K, generator=source)
    rewards = wrong + (right - wrong) * functional.one_hot(labels, K)
    rule = Signs.personal(K, source, SIGNS)
    return Scene(Table(K), contexts, rewards.float(), rule.space, by_rule(rule, labels))


def by_rule(rule: FeedbackRule, kinds: Tensor) -> Feedback:
    """People of these kinds (n,) follow the rule."""
    return lambda seen: rule.feedback(kinds[seen.rows], seen.rewards, seen.source)


def ten_actions(source: torch.Generator) -> Scene:
    return replace(table(source, K=10, rounds=4_900), explore=4_000)


def three_actions(source: torch.Generator) -> Scene:
    return table(source, K=3)


def stochastic(source: torch.Generator) -> Scene:
    return table(source, right=0.85, wrong=0.03)


def imbalanced(source: torch.Generator) -> Scene:
    return table(source, shares=torch.tensor([0.5, 0.2, 0.15, 0.1, 0.05]))


def personal(source: torch.Generator) -> Scene:
    """Two kinds of people, told by a column, of opposite signs."""
    scene = table(source)
    kinds = torch.randint(2, (len(scene.contexts),), generator=source)
    contexts = torch.cat([scene.contexts, kinds[:, None].float()], 1)

    def react(seen: Reactions) -> Tensor:
        glad = seen.rewards == kinds[seen.rows]
        return torch.where(seen.chance() < 0.1, 2 + (seen.chance() * 2).long(), glad.long())

    return replace(scene, context=Table(6), contexts=contexts, feedback=Category(4), react=react)


def categories(source: torch.Generator) -> Scene:
    """Eight kinds of people, each with signs of their own; the second best action is sometimes good."""
    kinds = torch.randint(8, (ROUNDS,), generator=source)
    best = torch.randint(4, (8,), generator=source)
    rewards = 0.9 * functional.one_hot(best, 4) + 0.2 * functional.one_hot((best + 1) % 4, 4)
    rule = Signs.personal(8, source, SIGNS)
    decoder = Decoder.from_assumption(alpha=1.1, theta=0.9, K=4)
    return Scene(Category(8), kinds, rewards[kinds], rule.space, by_rule(rule, kinds), decoder=decoder)


def images(source: torch.Generator) -> Scene:
    """Pictures of five noisy patterns; feedback is the picture of the next pattern when content, else the previous."""
    patterns = (torch.rand(5, 8, 8, generator=source) < 0.3).float()
    labels = torch.randint(5, (ROUNDS,), generator=source)
    contexts = (0.8 * patterns[labels] + 0.2 * torch.rand(ROUNDS, 8, 8, generator=source)).clamp(0, 1)
    space = Image(8, 8)
    rule = Neighbour(Labelled(contexts, labels, 5), space)
    return Scene(space, contexts, functional.one_hot(labels, 5).float(), space, by_rule(rule, labels))


def dwell_time(source: torch.Generator) -> Scene:
    """Feedback is a table: how long and how often, longer when content; how long is long depends on the person."""
    scene = table(source)
    pace = 1 + 2 * torch.rand(ROUNDS, generator=source)

    def react(seen: Reactions) -> Tensor:
        noise = torch.randn(len(seen.rows), 2, generator=source)
        seconds = pace[seen.rows] * (4 + 8 * seen.rewards + 1.5 * noise[:, 0])
        return torch.stack([seconds, seen.rewards + 0.5 * noise[:, 1]], 1)

    return replace(
        scene, context=Table(6), contexts=torch.cat([scene.contexts, pace[:, None]], 1), feedback=Table(2), react=react
    )


def off_policy_log(source: torch.Generator) -> Scene:
    return replace(table(source), log=True)


def action_shown(source: torch.Generator) -> Scene:
    """Four times in ten the feedback names the action."""
    scene = table(source)

    def react(seen: Reactions) -> Tensor:
        usual = scene.react(seen)
        return torch.where(seen.chance() < 0.4, SIGNS + seen.actions, usual)

    return replace(scene, feedback=Category(SIGNS + 5), react=react)


def label_noise(source: torch.Generator) -> Scene:
    """Three reactions in ten are those to the opposite reward."""
    scene = table(source)
    return replace(scene, react=turned(scene.react, lambda seen: seen.chance() < 0.3))


def adversary(source: torch.Generator) -> Scene:
    """Honest while actions are uniform; then half of the people answer the opposite."""
    scene = table(source)
    return replace(scene, react=turned(scene.react, lambda seen: (seen.rows >= EXPLORE) & (seen.chance() < 0.5)))


def flipped_halfway(source: torch.Generator) -> Scene:
    """From half of all rounds on, every reaction is the one to the opposite reward; the decoder is learned before."""
    scene = table(source)
    explore = ROUNDS // 2
    return replace(scene, react=turned(scene.react, lambda seen: seen.rows >= explore), explore=explore)


def flipped_while_exploring(source: torch.Generator) -> Scene:
    """Every reaction is the one to the opposite reward in the last third of the uniform rounds and ever after."""
    scene = table(source)
    return replace(scene, react=turned(scene.react, lambda seen: seen.rows >= EXPLORE * 2 // 3))


def turned(react: Feedback, when: Callable[[Reactions], Tensor]) -> Feedback:
    """As `react`, but the reaction to the opposite reward where `when` says so."""

    def other(seen: Reactions) -> Tensor:
        return react(replace(seen, rewards=(seen.rewards - when(seen).long()).abs()))

    return other


def noise(source: torch.Generator) -> Scene:
    """Feedback that depends on nothing."""
    return replace(table(source), react=anything)


def anything(seen: Reactions) -> Tensor:
    return (seen.chance() * SIGNS).long()


def breaks_later(source: torch.Generator) -> Scene:
    """Feedback depends on nothing once the decoder is learned."""
    scene = table(source)

    def react(seen: Reactions) -> Tensor:
        return torch.where(seen.rows >= EXPLORE, anything(seen), scene.react(seen))

    return replace(scene, react=react)


def segment_noise(source: torch.Generator) -> Scene:
    """Feedback of three people in ten, told by a column, depends on nothing."""
    scene = table(source)
    strange = torch.rand(ROUNDS, generator=source) < 0.3

    def react(seen: Reactions) -> Tensor:
        return torch.where(strange[seen.rows], anything(seen), scene.react(seen))

    contexts = torch.cat([scene.contexts, strange[:, None].float()], 1)
    return replace(scene, context=Table(6), contexts=contexts, react=react)


def constant(source: torch.Generator) -> Scene:
    """Everybody says the same."""
    return replace(table(source), react=lambda seen: torch.ones_like(seen.rows))


def duplicated(source: torch.Generator) -> Scene:
    """The first feedback of every five decisions is given to all five."""
    scene = table(source)
    return replace(scene, react=lambda seen: scene.react(seen)[seen.rows % BATCH // 5 * 5])


def shifted(source: torch.Generator) -> Scene:
    """Feedback is joined to the decision after its own."""
    scene = table(source)
    return replace(scene, react=lambda seen: scene.react(seen).roll(1, 0))


def drifting(source: torch.Generator) -> Scene:
    """More and more people use other signs, all of them in the end."""
    scene = table(source)
    labels = scene.rewards.argmax(1)
    later = by_rule(Signs.personal(5, source, SIGNS), labels)

    def react(seen: Reactions) -> Tensor:
        return torch.where(seen.chance() < seen.rows / ROUNDS, later(seen), scene.react(seen))

    return replace(scene, react=react)


def alike(source: torch.Generator) -> Scene:
    """The right action is rewarded six times in ten, a wrong one four and a half."""
    return table(source, right=0.6, wrong=0.45)


def too_common(source: torch.Generator) -> Scene:
    """Every other action is rewarded, and the decoder told to expect it."""
    scene = table(source, K=4)
    rewards = scene.rewards + scene.rewards.roll(1, 1)
    return replace(scene, rewards=rewards, decoder=Decoder(0.5, 0.2))


def too_few(source: torch.Generator) -> Scene:
    return replace(table(source, rounds=150), explore=100)


def wrongly_logged(source: torch.Generator) -> Scene:
    """A log that says uniform, of a policy that took the right action every other time."""
    scene = table(source)
    return replace(scene, log=True, drawn=0.5 / 5 + 0.5 * scene.rewards)


WORLDS: Mapping[str, World] = {
    "three_actions": World(False, "3 actions, personal signs", three_actions),
    "five_actions": World(False, "5 actions, personal signs", table),
    "ten_actions": World(False, "10 actions, personal signs", ten_actions),
    "stochastic": World(False, "rewarded with .85 when right, .03 when wrong", stochastic),
    "imbalanced": World(False, "one action is right in half of the contexts, another in a twentieth", imbalanced),
    "personal": World(False, "two kinds of people with opposite signs", personal),
    "categories": World(False, "categories; a second action is good with .2", categories),
    "images": World(False, "images as contexts and as feedback", images),
    "dwell_time": World(False, "numbers as feedback, on a scale of each person's own", dwell_time),
    "off_policy_log": World(False, "off-policy, from a uniform log", off_policy_log),
    "action_shown": World(True, "feedback names the action four times in ten", action_shown),
    "label_noise": World(True, "three reactions in ten are to the opposite reward", label_noise),
    "alike": World(True, "right .6, wrong .45: the margin is gone", alike),
    "too_common": World(True, "half of the actions are right", too_common),
    "adversary": World(True, "half of the people lie once the policy acts", adversary),
    "flipped_halfway": World(True, "all signs turn round once the policy acts", flipped_halfway),
    "flipped_exploring": World(True, "all signs turn round within the uniform rounds", flipped_while_exploring),
    "drifting": World(True, "signs change gradually", drifting),
    "breaks_later": World(True, "feedback becomes noise once the policy acts", breaks_later),
    "noise": World(True, "feedback depends on nothing", noise),
    "segment_noise": World(True, "feedback of three people in ten is noise", segment_noise),
    "constant": World(True, "everybody says the same", constant),
    "duplicated": World(True, "one feedback is joined to five decisions", duplicated),
    "shifted": World(True, "feedback is joined to the next decision", shifted),
    "too_few": World(True, "150 rounds", too_few),
    "wrongly_logged": World(True, "a log of another policy than it says", wrongly_logged),
}  # fmt: skip


def scene(world: str, seed: int) -> Scene:
    """The world of that name, drawn anew for each seed."""
    return WORLDS[world].make(generator(seed, f"scene {world}"))


def logged_actions(made: Scene, source: torch.Generator) -> Tensor:
    """Actions (n,) of the policy that wrote the log."""
    n, K = made.rewards.shape
    p = torch.full((n, K), 1 / K) if made.drawn is None else made.drawn
    return draw(p, torch.rand(n, generator=source))
