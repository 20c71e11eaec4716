"""The hidden reward cannot leak: nothing that learns, decodes or explores can be handed one, or reach one.

Every annotation below the learning packages is followed, into generics, callables and the classes that they name. The
type checker makes sure that every parameter has an annotation and that callers keep to it.
"""

from __future__ import annotations

import ast
import collections.abc
import importlib
import inspect
import pkgutil
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import tacit
from tacit.algorithms.memory import Memory
from tacit.environments import Arrival, Environment, HeldOut
from tacit.errors import InvalidInputError
from tacit.interactions import HiddenReward, as_tensor
from tacit.inverse import FiniteReward, NetworkReward, RewardModel
from tests import worlds

BLIND = (
    "tacit.algorithms", "tacit.decoder", "tacit.exploration", "tacit.inverse", "tacit.oracles", "tacit.encoders",
    "tacit.training", "tacit.health",
)  # fmt: skip
SOURCE = Path(tacit.__file__).parent

# Parameters that take anything: read by `as_tensor`, which refuses a hidden reward, or compared with names.
OPEN = {"contexts", "feedback", "value"}


def modules() -> Iterator[ModuleType]:
    for name in BLIND:
        module = importlib.import_module(name)
        yield module
        for found in pkgutil.walk_packages(getattr(module, "__path__", []), f"{name}."):
            yield importlib.import_module(found.name)


MODULES = {module.__name__: module for module in modules()}


def own(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Functions and classes that a module defines, private ones included."""
    for name, value in vars(module).items():
        here = getattr(value, "__module__", None) == module.__name__
        if here and (inspect.isclass(value) or inspect.isroutine(value)):
            yield f"{module.__name__}.{name}", value


def functions(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A function, or everything callable in a class: methods, properties, class and static methods, classes in it."""
    if not inspect.isclass(value):
        yield name, inspect.unwrap(value)
        return
    for member, held in vars(value).items():
        if isinstance(held, property):
            yield from ((f"{name}.{member}", part) for part in (held.fget, held.fset) if part)
        elif isinstance(held, classmethod | staticmethod):
            yield f"{name}.{member}", inspect.unwrap(held.__func__)
        elif inspect.isfunction(held) or (inspect.isclass(held) and held.__module__ == value.__module__):
            yield from functions(f"{name}.{member}", held)


def hints(holder: Any) -> Mapping[str, Any]:
    """Annotations as types, those that are imported for the type checker alone included."""
    names = {name: getattr(importlib.import_module(where), name) for where, name in (("tacit.algorithms", "Learner"),)}
    return typing.get_type_hints(holder, localns=names)


def leads_to_reward(hint: Any, seen: set[Any] | None = None) -> bool:
    """Whether something of this type is a hidden reward, or can be asked for one."""
    seen = set() if seen is None else seen
    if isinstance(hint, list):  # the parameters of a callable
        return any(leads_to_reward(part, seen) for part in hint)
    if any(leads_to_reward(part, seen) for part in typing.get_args(hint)):
        return True
    if not inspect.isclass(hint) or hint in seen:
        return False
    seen.add(hint)
    if issubclass(hint, HiddenReward):
        return True
    if not hint.__module__.startswith(("tacit.", "tests.")):
        return False
    held = [*hints(hint).values()]
    for _, function in functions(hint.__name__, hint):
        held += hints(function).values()
    return any(leads_to_reward(part, seen) for part in held)


def annotations() -> Iterator[tuple[str, str, Any]]:
    """Where, name and type of every parameter, result and attribute that is annotated in the learning packages."""
    for module in MODULES.values():
        yield from ((module.__name__, name, hint) for name, hint in hints(module).items())
        for name, value in own(module):
            if inspect.isclass(value):
                yield from ((name, attribute, hint) for attribute, hint in hints(value).items())
            for where, function in functions(name, value):
                yield from ((where, parameter, hint) for parameter, hint in hints(function).items())


def test_no_parameter_result_or_attribute_leads_to_a_hidden_reward():
    found = list(annotations())
    assert len(found) > 400
    assert [f"{where}: {name}" for where, name, hint in found if leads_to_reward(hint)] == []


def test_the_walk_passes_through_everything_that_learns():
    walked = {name for module in MODULES.values() for name, _ in own(module)}
    asked = {(where, name) for where, name, _ in annotations()}
    for kind, method, parameter in (
        (tacit.TwoView, "_absorb", "rounds"), (tacit.OnPolicy, "_absorb", "rounds"), (Memory, "add", "decoded"),
        (RewardModel, "fit", "good"), (NetworkReward, "fit", "bad"), (FiniteReward, "predict", "feedback"),
    ):  # fmt: skip
        name = f"{kind.__module__}.{kind.__name__}"
        assert name in walked
        assert (f"{name}.{method}", parameter) in asked


def test_every_parameter_is_annotated():
    bare = []
    for module in MODULES.values():
        for name, value in own(module):
            for where, function in functions(name, value):
                if not function.__code__.co_filename.startswith(str(SOURCE)):
                    continue  # made by dataclass from annotated fields
                named = set(inspect.signature(function).parameters) - {"self", "cls"}
                bare += [f"{where}: {parameter}" for parameter in named - set(function.__annotations__)]
    assert bare == []


def takes_anything(hint: Any) -> bool:
    if typing.get_origin(hint) in (collections.abc.Callable, np.ndarray):
        return False  # what a function is given is up to its own annotations; numbers are numbers
    return hint in (object, Any) or any(map(takes_anything, typing.get_args(hint)))


def test_what_takes_anything_is_known_by_name():
    assert {name for _, name, hint in annotations() if name != "return" and takes_anything(hint)} == OPEN


class Peeking:
    def __init__(self, rewards: HiddenReward) -> None: ...


class Attribute:
    rewards: list[HiddenReward | None]


@pytest.mark.parametrize(
    "hint",
    [
        HiddenReward, list[HiddenReward], HiddenReward | None, dict[str, tuple[int, HiddenReward]],
        Callable[[HiddenReward], int], Callable[[], HiddenReward], type[HiddenReward], Peeking, Attribute, Arrival,
        HeldOut, Environment, Callable[[list[Arrival]], None], type("Sub", (HiddenReward,), {}),
    ],
    ids=str,
)  # fmt: skip
def test_the_walk_finds_a_hidden_reward_wherever_it_is(hint):
    assert leads_to_reward(hint)


@pytest.mark.parametrize(
    "hint", [int, torch.Tensor, tacit.Interactions, tacit.Decision, tacit.Learner, list[int] | None], ids=str
)
def test_the_walk_does_not_cry_wolf(hint):
    assert not leads_to_reward(hint)


@pytest.mark.parametrize("name", MODULES)
def test_modules_that_learn_neither_import_nor_name_it(name):
    text = Path(MODULES[name].__file__).read_text()
    assert not any(value is HiddenReward for value in vars(MODULES[name]).values())
    assert "HiddenReward" not in text
    for forbidden in ("tacit.environments", "tacit.evaluation"):
        assert forbidden not in text


@pytest.mark.parametrize("name", ["contexts", "feedback"])
def test_handed_over_all_the_same_it_is_refused(name):
    hidden = HiddenReward(torch.ones(3))
    with pytest.raises(InvalidInputError, match=name):
        as_tensor(hidden, name)
    learner = worlds.on_policy(worlds.finite(), worlds.classes())
    with pytest.raises(InvalidInputError, match=name):
        learner.choose(hidden) if name == "contexts" else learner.learn(learner.choose([0, 1, 2]), hidden)


def reads_values(path: Path) -> bool:
    """Whether `.values` is read anywhere but in a call, as of a dictionary's method."""
    tree = ast.parse(path.read_text())
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    read = {node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "values"}
    return bool(read - called)


def test_only_evaluation_reads_its_numbers():
    readers = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if reads_values(path)}
    # Its own module counts them.
    assert {reader for reader in readers if not reader.startswith("evaluation/")} == {"interactions.py"}
    assert readers - {"interactions.py"}


def test_only_those_who_make_or_read_it_name_it():
    naming = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if "HiddenReward" in path.read_text()}
    assert {name for name in naming if not name.startswith(("environments/", "evaluation/"))} == {
        "__init__.py", "interactions.py",
    }  # fmt: skip
