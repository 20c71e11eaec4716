"""Contracts are about how components behave, not about how well they learn: short training does."""

from __future__ import annotations

import math

import pytest

from tacit.algorithms import two_view
from tacit.inverse import base, reward
from tacit.oracles import network, policy_network


@pytest.fixture(autouse=True)
def short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((policy_network, "EPOCHS"), (reward, "STEPS"), (network, "RELEARN")):
        monkeypatch.setattr(module, name, 3)
    # So little is learned that nothing else would be believed, and many a refinement contradicted.
    monkeypatch.setattr(base, "SIGNIFICANCE", 0.0)
    monkeypatch.setattr(two_view, "CERTAIN", math.inf)
