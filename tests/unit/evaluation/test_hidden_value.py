"""From decoded to hidden value: what is certain if the posterior is right, and what is measured if it is not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tacit.decoder import G, posterior
from tacit.errors import InvalidInputError
from tacit.evaluation import DecoderError, decoder_error, hidden_interval
from tacit.interactions import Interactions
from tests import worlds

WORLD = worlds.instance()
X, Y, K = WORLD.shape
RIGHT = posterior(WORLD.f[:, None], WORLD.phi)
# In the last context every feedback is read as its opposite.
WRONG = posterior(WORLD.f[:, None], torch.cat([WORLD.phi[:-1], 1 - WORLD.phi[-1:]]))


def decoded(h: Tensor) -> Tensor:
    return G(h, WORLD.decoder.beta, WORLD.decoder.sigma)


def expected(decoded: Tensor, policy: Tensor) -> float:
    """What the decoded reward (X, Y, K) of an action, or of all (X, Y, 1), is worth under a policy (X, K)."""
    each = torch.einsum("xay,xya->xa", WORLD.feedback_given_action, decoded.expand(X, Y, K))
    return float(WORLD.contexts @ (policy * each).sum(1))


def test_with_the_right_posterior_decoded_is_at_most_hidden_and_hidden_is_the_ceiling():
    reward = WORLD.phi
    possible = WORLD.feedback.sum(1) > 0
    ceiling = decoded(RIGHT).amax(-1)
    torch.testing.assert_close(ceiling[possible], reward[possible])
    assert (decoded(RIGHT) <= ceiling[..., None]).all()


@pytest.mark.parametrize("by", ["context and feedback", "sharpness"])
def test_a_right_posterior_is_hardly_ever_found_wrong(by):
    rounds = worlds.uniform_log(worlds.finite(), 20_000)
    policy = torch.full((len(rounds), K), 1 / K)
    groups = rounds.contexts * Y + rounds.feedback if by == "context and feedback" else None
    found = decoder_error(rounds, RIGHT[rounds.contexts, rounds.feedback], WORLD.decoder, policy, groups)
    # Only chance in the frequencies is left.
    assert 0 <= found.overstated < 0.01
    assert 0 <= found.missed < 0.01
    assert found.rounds == 20_000
    assert found.groups == (X * Y if groups is not None else found.groups)


@pytest.mark.parametrize("policy", [torch.full((X, K), 1 / K), torch.eye(K)[list(worlds.BEST)]], ids=["any", "best"])
def test_what_a_wrong_posterior_adds_and_misses_is_measured(policy):
    rounds = worlds.uniform_log(worlds.finite(), 20_000)
    groups = rounds.contexts * Y + rounds.feedback
    h = WRONG[rounds.contexts, rounds.feedback]
    found = decoder_error(rounds, h, WORLD.decoder, policy[rounds.contexts], groups)
    added = expected((decoded(WRONG) - decoded(RIGHT)).clamp(min=0), policy.double())
    missed = expected((decoded(RIGHT) - decoded(WRONG)).amax(-1, keepdim=True).clamp(min=0), policy.double())
    assert found.overstated == pytest.approx(added, abs=0.015)
    assert found.missed == pytest.approx(missed, abs=0.015)
    assert max(added, missed) > 0.04


def test_a_round_alone_in_its_group_counts_as_read_wrongly():
    rounds = worlds.uniform_log(worlds.finite(), 60)
    h = RIGHT[rounds.contexts, rounds.feedback]
    policy = torch.full((60, K), 1 / K)
    found = decoder_error(rounds, h, WORLD.decoder, policy, torch.arange(60))
    taken = WORLD.decoder.decode(h, rounds.actions)
    assert found == DecoderError(
        pytest.approx(float(taken.mean())), pytest.approx(float(1 - decoded(h).amax(1).mean())), 60, 60
    )


def test_a_right_posterior_bounds_the_hidden_value_from_both_sides():
    rounds = worlds.uniform_log(worlds.finite(), 6_000)
    policy = torch.full((len(rounds), K), 1 / K)
    found = hidden_interval(rounds, RIGHT[rounds.contexts, rounds.feedback], WORLD.decoder, policy)
    value = float(WORLD.contexts @ WORLD.f.mean(1))
    assert found.lower < value < found.upper < value + 0.05
    assert found.confidence == 0.95
    assert "if the paper's assumptions hold and the posterior is right" in found.note


def test_a_measured_error_widens_the_interval_until_it_holds_the_hidden_value():
    held_out, rounds = worlds.uniform_log(worlds.finite(1), 8_000, seed=1), worlds.uniform_log(worlds.finite(2), 8_000)
    best = torch.eye(K)[list(worlds.BEST)]
    value = float(WORLD.contexts @ WORLD.f.amax(1))
    error = decoder_error(
        held_out, WRONG[held_out.contexts, held_out.feedback], WORLD.decoder, best[held_out.contexts],
        held_out.contexts * Y + held_out.feedback,
    )  # fmt: skip
    given: Any = (rounds, WRONG[rounds.contexts, rounds.feedback], WORLD.decoder, best[rounds.contexts])
    trusting, measured = hidden_interval(*given), hidden_interval(*given, error=error)
    assert trusting.upper < value
    assert measured.lower <= value <= measured.upper
    assert measured.lower == pytest.approx(max(trusting.lower - error.overstated, 0))
    assert measured.upper == pytest.approx(min(trusting.upper + error.missed, 1))
    assert f"{error.missed:.4f} missed, on 8000 uniform rounds in 9 groups" in measured.note


def test_what_speaks_against_the_log_is_said_as_well():
    rounds = worlds.uniform_log(worlds.finite(), 20)
    found = hidden_interval(rounds, RIGHT[rounds.contexts, rounds.feedback], WORLD.decoder, rounds.actions)
    assert "few effective rounds" in found.note


@pytest.mark.parametrize(
    ("name", "wrong", "problem"),
    [
        ("posteriors", torch.zeros(5, K + 1), r"posteriors: expected shape \(5, 4\)"),
        ("posteriors", torch.full((5, K), 1.5), "posteriors: outside 0..1 in row 0"),
        ("policy", torch.zeros(5, K), "policy: probabilities do not sum to 1"),
        ("groups", torch.zeros(5), "groups: expected a column of whole numbers, got torch.float32"),
        ("groups", torch.zeros(5, 2, dtype=torch.long), "groups: expected a column of whole numbers"),
        ("groups", torch.zeros(4, dtype=torch.long), "groups: expected one per decision, 5, got 4"),
        ("rounds", "epsilon-greedy", "probabilities: the decoder's error is measured on uniformly drawn actions only"),
    ],
)
def test_bad_input_is_named(name, wrong, problem):
    rounds = worlds.uniform_log(worlds.finite(), 5)
    if name == "rounds":
        others = torch.tensor([[0.4, 0.2, 0.2, 0.2]]).expand(5, K)
        wrong = Interactions(rounds.contexts, rounds.actions, others, rounds.feedback)
    good: dict[str, Any] = {
        "rounds": rounds, "posteriors": torch.full((5, K), 1 / K), "decoder": WORLD.decoder,
        "policy": torch.full((5, K), 1 / K), "groups": None,
    }  # fmt: skip
    with pytest.raises(InvalidInputError, match=problem):
        decoder_error(**good | {name: wrong})
