"""One list of every component, and how each kind is made, taught and asked. A new component belongs in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

import tacit
from tacit.encoders import Space
from tacit.environments import Environment
from tacit.environments.classification import Classification, Labelled, Neighbour, Signs
from tacit.environments.digits import digits
from tacit.environments.finite import FiniteEnvironment
from tacit.environments.tables import tabular
from tacit.inverse import FiniteInverse, FiniteReward, InverseTraining, NetworkInverse, NetworkReward
from tacit.oracles import FinitePolicies, NetworkOracle, NetworkPolicies, OracleTraining, VovkOracle
from tacit.seeding import generator
from tests import worlds

ROUNDS = 80
ACTIONS = 4

QUICK = InverseTraining(contrast_steps=3, steps=8, interval=4, batch=16)
BRIEF = OracleTraining(replay=1, warm_up=5, batch=16, capacity=50)
PAPER = OracleTraining(optimiser="cocob", loss="log", augment=False, replay=0, warm_up=0, average=0)

SPACES: dict[str, Space] = {
    "category": tacit.Category(3),
    "table": tacit.Table(5),
    "image": tacit.Image(8, 6),
    "colour image": tacit.Image(6, 7, channels=3),
}
CLASSES = worlds.classes()


def values(space: Space, count: int, seed: int = 0) -> Tensor:
    """Any values of that kind."""
    source = torch.Generator().manual_seed(seed)
    if isinstance(space, tacit.Category):
        return torch.randint(space.count, (count,), generator=source)
    return torch.rand(count, *space.shape, generator=source)


def uniform_rounds(context: Space, feedback: Space) -> tacit.Interactions:
    source = torch.Generator().manual_seed(1)
    return tacit.Interactions(
        values(context, ROUNDS, 2), torch.randint(ACTIONS, (ROUNDS,), generator=source),
        torch.full((ROUNDS, ACTIONS), 1 / ACTIONS), values(feedback, ROUNDS, 3),
    )  # fmt: skip


def biased_rounds(context: Space, feedback: Space) -> tacit.Interactions:
    """Of a policy that prefers another action in every round."""
    rounds = uniform_rounds(context, feedback)
    preferred = torch.randn(ROUNDS, ACTIONS, generator=torch.Generator().manual_seed(10))
    return replace(rounds, probabilities=preferred.softmax(1))


def decoded_rounds(context: Space) -> tuple[Tensor, Tensor, Tensor]:
    source = torch.Generator().manual_seed(4)
    actions = torch.randint(ACTIONS, (ROUNDS,), generator=source)
    return values(context, ROUNDS, 5), actions, torch.rand(ROUNDS, generator=source)


@dataclass(frozen=True)
class Model:
    """Something that learns from rounds and is asked about others: inverse and reward models, oracles of any kind.

    `make` gets the generator that it draws from; `taught` and `asked` are the columns that it learns from and is asked
    about. `seeded` says whether what comes out depends on the generator, `ready` whether there is an answer before
    anything was learned, `single` whether the answer is one number and not one for every action.
    """

    make: Callable[[torch.Generator], Any]
    learn: Callable[[Any], object]
    ask: Callable[..., Tensor]
    asked: tuple[Tensor, ...]
    taught: tuple[Tensor, ...]
    seeded: bool
    ready: bool
    bounded: bool = True
    sums_to_one: bool = False
    single: bool = False


def _inverse(
    make: Callable[[torch.Generator], Any], context: Space, feedback: Space, seeded: bool = True,
    drawn: Callable[[Space, Space], tacit.Interactions] = uniform_rounds,
) -> Model:  # fmt: skip
    rounds = drawn(context, feedback)
    return Model(
        make, lambda model: model.fit(rounds), lambda model, *asked: model.posterior(*asked),
        (values(context, 20, 6), values(feedback, 20, 7)),
        (rounds.contexts, rounds.actions, rounds.probabilities, rounds.feedback),
        seeded, ready=False, sums_to_one=True,
    )  # fmt: skip


def _network_inverse(context: Space, feedback: Space, training: InverseTraining = QUICK) -> Model:
    return _inverse(
        lambda source: NetworkInverse(context, feedback, ACTIONS, training, source), context, feedback
    )


def _oracle(make: Callable[[torch.Generator], Any], context: Space, seeded: bool = True) -> Model:
    rounds = decoded_rounds(context)

    def learn(oracle: Any) -> None:
        oracle.warm_up(*rounds)
        oracle.update(*rounds)

    return Model(
        make, learn, lambda oracle, *asked: oracle.predict(*asked),
        (values(context, 20, 6),), rounds, seeded, ready=True,
    )  # fmt: skip


def _policies(make: Callable[[torch.Generator], Any], context: Space, seeded: bool = True) -> Model:
    rounds = decoded_rounds(context)
    return Model(
        make, lambda policies: policies.maximise(*rounds), lambda policies, *asked: policies.scores(*asked),
        (values(context, 20, 6),), rounds, seeded, ready=False, bounded=not seeded,
    )  # fmt: skip


def _reward(make: Callable[[torch.Generator], Any], context: Space, feedback: Space, seeded: bool = True) -> Model:
    rounds = uniform_rounds(context, feedback)
    good, bad = rounds[slice(20)], rounds[slice(20, None)]
    return Model(
        make, lambda model: model.fit(good, bad, None), lambda model, *asked: model.predict(*asked),
        (values(context, 20, 6), values(feedback, 20, 7)), (rounds.contexts, rounds.feedback), seeded, ready=False,
        single=True,
    )  # fmt: skip


THREE = tacit.Category(3)
MODELS: dict[str, Model] = {
    "FiniteInverse": _inverse(lambda source: FiniteInverse(CLASSES.f, CLASSES.phi), THREE, THREE, seeded=False),
    "NetworkInverse, cocob": _network_inverse(
        tacit.Table(5), THREE, InverseTraining(
            loss="log", optimiser="cocob", contrast=0, contrast_steps=0, average=0, dropout=0, steps=8, batch=16,
            patience=1,
        ),
    ),
    "FiniteInverse, another policy's rounds": _inverse(
        lambda source: FiniteInverse(CLASSES.f, CLASSES.phi), THREE, THREE, seeded=False, drawn=biased_rounds
    ),
    "NetworkInverse, another policy's rounds": _inverse(
        lambda source: NetworkInverse(THREE, THREE, ACTIONS, QUICK, source), THREE, THREE, drawn=biased_rounds
    ),
    **{f"NetworkInverse, {name}": _network_inverse(space, space) for name, space in SPACES.items()},
    "FiniteReward": _reward(lambda source: FiniteReward(CLASSES.phi), THREE, THREE, seeded=False),
    "NetworkReward, without averages": _reward(
        lambda source: NetworkReward(THREE, THREE, replace(QUICK, average=0), source), THREE, THREE
    ),
    **{
        f"NetworkReward, {name}": _reward(
            lambda source, space=space: NetworkReward(space, space, QUICK, source), space, space
        )
        for name, space in SPACES.items()
    },
    "VovkOracle": _oracle(lambda source: VovkOracle(CLASSES.f), THREE, seeded=False),
    "NetworkOracle, cocob": _oracle(
        lambda source: NetworkOracle(tacit.Table(5), ACTIONS, PAPER, source), tacit.Table(5)
    ),
    **{
        f"NetworkOracle, {name}": _oracle(
            lambda source, space=space: NetworkOracle(space, ACTIONS, BRIEF, source), space
        )
        for name, space in SPACES.items()
    },
    "FinitePolicies": _policies(lambda source: FinitePolicies(CLASSES.f), THREE, seeded=False),
    **{
        f"NetworkPolicies, {name}": _policies(
            lambda source, space=space: NetworkPolicies(space, ACTIONS, BRIEF, source), space
        )
        for name, space in SPACES.items()
    },
}

LEARNERS: dict[str, Callable[[int], tacit.Learner]] = {
    f"{kind.__name__}, {name}": (
        lambda seed, kind=kind, world=world, models=models: kind(
            world(), models, 300, seed=seed, decoder=tacit.Decoder(0.6, 0.3)
        )
    )
    for kind in (worlds.on_policy, worlds.off_policy, worlds.two_view)
    for name, world, models in (
        ("finite", worlds.finite, CLASSES),
        ("networks", worlds.signs, worlds.networks(replace(worlds.INVERSE, steps=120, batch=32), BRIEF)),
    )
}  # fmt: skip


def _images(seed: int) -> Classification:
    source = torch.Generator().manual_seed(8)
    labels = torch.arange(120) % 5
    examples = Labelled(torch.rand(120, 8, 8, generator=source), labels, classes=5)
    space = tacit.Image(8, 8)
    rule = Neighbour(examples, space)
    return Classification(examples[20:], examples[:20], space, rule, seed, right=0.8, wrong=0.1)


def _signs(seed: int) -> Classification:
    labels = torch.arange(120) % 4
    examples = Labelled(values(tacit.Table(5), 120), labels, classes=4)
    rule = Signs.personal(4, torch.Generator().manual_seed(9))
    return Classification(examples[20:], examples[:20], tacit.Table(5), rule, seed)


ENVIRONMENTS: dict[str, Callable[[int], Environment]] = {
    "finite": lambda seed: FiniteEnvironment(worlds.instance(), seed),
    "classification, images shown": _images,
    "classification, signs": _signs,
    "digits": lambda seed: digits(seed, passes=1),
    "a table": lambda seed: tabular("satimage", seed, passes=1),
}


def source(seed: int) -> torch.Generator:
    return generator(seed, "contracts")
