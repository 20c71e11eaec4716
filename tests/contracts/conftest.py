"""Contracts are about how components behave, not about how well they learn: short training does."""

from __future__ import annotations

import pytest

from tacit.oracles import policy_network


@pytest.fixture(autouse=True)
def short_policy_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_network, "EPOCHS", 3)
