"""What every test runs under: one thread, no hidden randomness, no network, the same examples every time."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import hypothesis
import pytest
import torch

torch.set_num_threads(1)

# The same examples in every run; no deadline, because time is not asserted in tests.
hypothesis.settings.register_profile("tacit", deadline=None, derandomize=True)
hypothesis.settings.load_profile("tacit")


@pytest.fixture(autouse=True)
def no_global_randomness() -> Iterator[None]:
    """Generators are passed in, by tests as well: a test that leaves torch's global generator moved fails."""
    before = torch.get_rng_state()
    yield
    if not torch.equal(before, torch.get_rng_state()):
        pytest.fail("torch's global generator was used; pass one in, and make layers within seeding.initialisation")


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(address: object, *args: object, **kwargs: object) -> None:
        raise AssertionError(f"a test wanted to fetch {address}")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)


@pytest.fixture
def source() -> torch.Generator:
    """A generator that starts the same in every test."""
    return torch.Generator().manual_seed(20261119)
