"""What tacit promises to whoever imports it."""

from __future__ import annotations

import inspect
import subprocess
import sys
from types import ModuleType

import pytest

import tacit

HEAVY = ("matplotlib", "sklearn", "pyarrow", "pandas", "scipy", "typer", "rich", "transformers", "peft", "coba")


def test_the_promised_names_are_all_there_and_nothing_else_is_public():
    public = {
        name for name, value in vars(tacit).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "annotations"
    }  # fmt: skip
    assert set(tacit.__all__) == public


def test_every_name_is_promised_once_and_in_order():
    assert tacit.__all__ == sorted(set(tacit.__all__))


@pytest.mark.parametrize("name", tacit.__all__)
def test_every_promised_name_says_what_it_is(name):
    value = getattr(tacit, name)
    assert value.__module__.startswith("tacit.")
    assert inspect.getdoc(value)


def test_every_error_can_be_caught_as_one():
    errors = [value for name in tacit.__all__ if issubclass(type(value := getattr(tacit, name)), type)]
    raised = [error for error in errors if issubclass(error, Exception) and not issubclass(error, Warning)]
    assert len(raised) > 10
    assert all(issubclass(error, tacit.TacitError) for error in raised)


def test_importing_it_brings_in_nothing_heavy_and_says_nothing():
    script = f"import sys, tacit; print([name for name in {HEAVY!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert (ran.stdout.strip(), ran.stderr) == ("[]", "")
