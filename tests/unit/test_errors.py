"""The tree of errors: drawn as it is, caught broadly or narrowly, and fit to travel between processes."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest

from tacit import errors

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == "tacit.errors"]
EXAMPLES = {
    errors.InvalidInputError: ("actions", "outside 0..2"),
    errors.IdentifiabilityError: ("theta", "is too small"),
    errors.MissingExtraError: ("matplotlib", "plots"),
}


def drawn() -> dict[str, str]:
    """Every class of the drawing in the module's docstring, with the class it hangs under."""
    parents: dict[int, str] = {}
    found = {}
    for line in str(errors.__doc__).splitlines():
        if match := re.match(r"([│├└─ ]*)([A-Z]\w+(?:Error|Warning))\b(?: \((?:also )?(\w+)\))?", line):
            depth = len(match[1])
            found[match[2]] = parents[max(d for d in parents if d < depth)] if depth else match[3] or "Exception"
            parents = {d: name for d, name in parents.items() if d < depth} | {depth: match[2]}
    return found


def test_the_drawing_shows_every_class_under_its_parent():
    assert drawn() == {kind.__name__: kind.__bases__[0].__name__ for kind in CLASSES}


def test_bad_input_can_be_caught_as_a_value_error():
    assert issubclass(errors.InvalidInputError, ValueError)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_survives_the_way_to_another_process(kind):
    error = kind(*EXAMPLES.get(kind, ("something went wrong",)))
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_bad_input_names_the_argument_and_the_problem():
    error = errors.InvalidInputError("actions", "outside 0..2")
    assert (error.argument, error.problem, str(error)) == ("actions", "outside 0..2", "actions: outside 0..2")


def test_a_missing_extra_says_how_to_install_it():
    assert "pip install 'tacit[plots]'" in str(errors.MissingExtraError("matplotlib", "plots"))
