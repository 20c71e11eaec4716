"""Off-policy estimates: their formulas, what they expect on average, their intervals, and what they refuse."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from tacit.errors import InvalidInputError
from tacit.evaluation import Estimate, doubly_robust, ips, off_policy, self_normalised
from tacit.evaluation.off_policy import Weighted
from tacit.exploration import draw
from tacit.interactions import Interactions

K = 3
ESTIMATORS = {"ips": ips, "self_normalised": self_normalised, "doubly_robust": doubly_robust}


def simplex(source: torch.Generator, n: int) -> Tensor:
    return (1.5 * torch.randn(n, K, generator=source, dtype=torch.float64)).softmax(1)


def log_of(actions: Tensor, probabilities: Tensor) -> Interactions:
    nothing = torch.zeros(len(actions))
    return Interactions(nothing, actions, probabilities, nothing)


def random_log(source: torch.Generator, n: int = 40) -> tuple[Interactions, Tensor, Tensor, Tensor]:
    """A log, decoded rewards, a policy and predictions that have nothing to do with each other."""
    probabilities = simplex(source, n)
    actions = torch.multinomial(probabilities, 1, generator=source)[:, 0]
    decoded = torch.rand(n, generator=source, dtype=torch.float64)
    return log_of(actions, probabilities), decoded, simplex(source, n), torch.rand(n, K, generator=source)


def estimate(name: str, rounds: Interactions, decoded: Any, policy: Any, predictions: Any, **settings: Any) -> Estimate:
    if name == "doubly_robust":
        return doubly_robust(rounds, decoded, policy, predictions, **settings)
    return ESTIMATORS[name](rounds, decoded, policy, **settings)


def test_estimates_are_what_their_formulas_say(source):
    rounds, decoded, policy, predictions = random_log(source)
    weights, robust = [], []
    for t, a in enumerate(rounds.actions.tolist()):
        weights.append(float(policy[t, a] / rounds.probabilities[t, a]))
        expected = sum(float(policy[t, b] * predictions[t, b]) for b in range(K))
        robust.append(weights[t] * float(decoded[t] - predictions[t, a]) + expected)
    weighted = [weight * reward for weight, reward in zip(weights, decoded.tolist(), strict=True)]
    n = len(rounds)
    assert ips(rounds, decoded, policy).value == pytest.approx(sum(weighted) / n)
    assert self_normalised(rounds, decoded, policy).value == pytest.approx(sum(weighted) / sum(weights))
    found = doubly_robust(rounds, decoded, policy, predictions)
    assert found.value == pytest.approx(sum(robust) / n, rel=1e-6)
    assert found.largest_weight == pytest.approx(max(weights))
    assert found.effective_rounds == pytest.approx(sum(weights) ** 2 / sum(weight**2 for weight in weights))
    assert (found.rounds, found.confidence) == (n, 0.95)


@pytest.mark.parametrize("name", ["ips", "doubly_robust"])
def test_they_are_unbiased_whatever_is_predicted(name, source):
    probabilities, policy, rewards = simplex(source, 4), simplex(source, 4), torch.rand(4, K, generator=source)
    predictions = torch.rand(4, K, generator=source)
    # All that can happen in one round of four equally likely contexts, and how likely it is.
    mean = sum(
        float(probabilities[x, a]) / 4 * estimate(
            name, log_of(torch.tensor([a]), probabilities[x : x + 1]), rewards[x, a][None], policy[x : x + 1],
            predictions[x : x + 1],
        ).value
        for x, a in product(range(4), range(K))
    )  # fmt: skip
    assert mean == pytest.approx(float((policy * rewards).sum() / 4), rel=1e-6)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_the_bound_is_given_has_the_right_mean_and_never_falls_below_its_floor(name, source, monkeypatch):
    rounds, decoded, policy, predictions = random_log(source)
    given: list[tuple[Tensor, Tensor]] = []
    monkeypatch.setattr(
        off_policy, "lower_bound", lambda values, floor, risk, planned: given.append((values, floor)) or torch.zeros(())
    )

    def bounded(actions: Tensor, rewards: Tensor) -> tuple[Tensor, Tensor]:
        given.clear()
        estimate(name, log_of(actions, rounds.probabilities), rewards, policy, predictions)
        (lower, lower_floor), (upper, upper_floor) = given
        return torch.stack([lower, upper]), torch.stack([lower_floor, upper_floor])

    values, floors = bounded(rounds.actions, decoded)
    assert (values >= -floors - 1e-12).all()
    # The last round, had it gone otherwise: the floor stays, and the mean over its actions is that of the policy.
    rewards, total = torch.tensor([0.2, 0.9, 0.4], dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    for a in range(K):
        actions, changed = rounds.actions.clone(), decoded.clone()
        actions[-1], changed[-1] = a, rewards[a]
        values, again = bounded(actions, changed)
        torch.testing.assert_close(again, floors, rtol=0, atol=0)
        total += rounds.probabilities[-1, a] * values[:, -1]
    expected = float(policy[-1] @ rewards)
    assert total.tolist() == pytest.approx([expected, 1 - expected])


def adaptive_logs(source: torch.Generator, runs: int, n: int) -> list[tuple[Interactions, Tensor]]:
    """Logs of one context whose policy follows its own luck: 0.9-greedy on the mean rewards so far."""
    chances = torch.tensor([0.2, 0.5, 0.7], dtype=torch.float64)
    totals, counts = torch.ones(runs, K, dtype=torch.float64), torch.full((runs, K), 2.0, dtype=torch.float64)
    uniforms = torch.rand(n, 2, runs, generator=source, dtype=torch.float64)
    columns = []
    for t in range(n):
        greedy = torch.nn.functional.one_hot((totals / counts).argmax(1), K)
        probabilities = 0.1 / K + 0.9 * greedy.double()
        actions = draw(probabilities, uniforms[t, 0])
        rewards = (uniforms[t, 1] < chances[actions]).double()
        taken = torch.nn.functional.one_hot(actions, K)
        totals, counts = totals + taken * rewards[:, None], counts + taken
        columns.append((actions, probabilities, rewards))
    actions, probabilities, rewards = (torch.stack(column, 1) for column in zip(*columns, strict=True))
    return [(log_of(actions[run], probabilities[run]), rewards[run]) for run in range(runs)]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_intervals_hold_the_value_though_the_log_followed_its_own_rewards(name, source):
    n, runs = 200, 120
    policy = torch.tensor([[0.6, 0.3, 0.1]]).expand(n, K)
    predictions = torch.tensor([[0.3, 0.5, 0.6]]).expand(n, K)
    truth = 0.6 * 0.2 + 0.3 * 0.5 + 0.1 * 0.7
    found = [estimate(name, *log, policy, predictions) for log in adaptive_logs(source, runs, n)]
    covered = sum(one.lower <= truth <= one.upper for one in found)
    assert covered >= 0.95 * runs  # the method promises 95 % and gives more
    assert sum(one.upper - one.lower for one in found) / runs < 0.75


def test_the_better_the_predictions_the_narrower_the_interval(source):
    n = 2_000
    probabilities = simplex(source, 1).expand(n, K)
    actions = torch.multinomial(probabilities, 1, generator=source)[:, 0]
    chances = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    decoded = chances[actions]
    policy = torch.full((n, K), 1 / K)
    rounds = log_of(actions, probabilities)
    robust = doubly_robust(rounds, decoded, policy, chances.expand(n, K))
    plain = ips(rounds, decoded, policy)
    assert robust.upper - robust.lower < 0.5 * (plain.upper - plain.lower)
    assert robust.value == pytest.approx(0.5)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_the_log_could_never_show_may_be_worth_anything(name, source):
    n = 4_000
    probabilities = torch.tensor([[0.5, 0.5, 0.0]]).expand(n, K)
    actions = torch.multinomial(probabilities, 1, generator=source)[:, 0]
    policy = torch.tensor([[0.3, 0.3, 0.4]]).expand(n, K)
    found = estimate(name, log_of(actions, probabilities), torch.ones(n), policy, torch.full((n, K), 0.5))
    # Three fifths are worth 1, two fifths are unknown.
    assert 0.5 < found.lower < 0.6
    assert found.upper == pytest.approx(1, abs=1e-3)
    assert "40.0% of what the policy does was impossible in the log" in found.note


def test_a_policy_given_by_its_actions_is_one_that_always_takes_them(source):
    rounds, decoded, _, _ = random_log(source)
    actions = torch.randint(K, (len(rounds),), generator=source)
    table = torch.nn.functional.one_hot(actions, K).float()
    assert ips(rounds, decoded, actions) == ips(rounds, decoded, table)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_interval_contains_the_value_or_its_nearest_possible_one(name, source):
    for _ in range(30):
        rounds, decoded, policy, predictions = random_log(source, 10)
        found = estimate(name, rounds, decoded, policy, predictions)
        assert 0 <= found.lower <= min(max(found.value, 0), 1) <= found.upper <= 1


def test_more_confidence_and_a_shorter_log_than_planned_widen_the_interval(source):
    rounds, decoded, policy, _ = random_log(source, 1_000)
    usual = ips(rounds, decoded, policy)
    for wider in (ips(rounds, decoded, policy, confidence=0.999), ips(rounds, decoded, policy, planned=20_000)):
        assert wider.value == usual.value
        assert wider.upper - wider.lower > usual.upper - usual.lower


def notes(n: int, probability: float, policy: int | None = None) -> str:
    """The note on a policy that takes action 0, or `policy`, in a log that took action 0 with a stated probability."""
    rest = (1 - probability) / 2
    probabilities = torch.tensor([[probability, rest, rest]]).expand(n, K)
    wanted = torch.full((n,), policy or 0)
    return ips(log_of(torch.zeros(n, dtype=torch.long), probabilities), torch.zeros(n), wanted).note


def test_notes_say_what_stands_against_an_estimate_and_nothing_else():
    assert notes(500, 1.0) == ""
    assert "few effective rounds: for this policy the log is worth 50 rounds" in notes(50, 1.0)
    assert "weights too large: one round carries 10% of all weight" in notes(10, 1.0)
    assert "weights average 2 and not 1" in notes(500, 0.5)
    never = ips(log_of(torch.zeros(9, dtype=torch.long), torch.full((9, K), 1 / K)), torch.ones(9), [1] * 9)
    assert never.note == "the log never does what the policy does, and says nothing of it"
    assert never.effective_rounds == 0


def test_without_a_single_round_that_counts_there_is_no_self_normalised_value():
    rounds = log_of(torch.zeros(9, dtype=torch.long), torch.full((9, K), 1 / K))
    found = self_normalised(rounds, torch.ones(9), torch.ones(9, dtype=torch.long))
    assert math.isnan(found.value)
    assert (found.lower, found.upper) == (0, pytest.approx(1, abs=0.1))


def test_an_estimate_reads_well():
    rounds = log_of(torch.zeros(500, dtype=torch.long), torch.tensor([[1.0, 0.0, 0.0]]).expand(500, K))
    text = str(ips(rounds, torch.ones(500), torch.zeros(500, dtype=torch.long)))
    assert text.startswith("1.0000, 95 % between 0.9")
    assert text.endswith("; 500 rounds, worth 500")


N = 5
GOOD = torch.full((N, K), 1 / K)


@pytest.mark.parametrize(
    ("name", "wrong", "problem"),
    [
        ("policy", torch.full((N, K + 1), 0.25), "policy: expected the probabilities of 3 actions in each of 5"),
        ("policy", torch.full((N - 1, K), 1 / K), r"policy: .* got shape \(4, 3\)"),
        ("policy", torch.full((N, K), 0.5), "policy: probabilities do not sum to 1 in row 0"),
        ("policy", torch.tensor([[1.5, -0.5, 0.0]] * N), "policy: a probability is negative in row 0; 5 of 5"),
        ("policy", torch.full((N, K), torch.nan), "policy: not a finite number"),
        ("policy", [0, 1, 2, 3, 0], r"actions: outside 0..2 \(found 3\) in row 3"),
        ("policy", [0, 1], "policy: expected one per decision, 5, got 2"),
        ("decoded", [0.0, 1.0, 1.01, 0.0, 0.0], "decoded: outside 0..1 in row 2; 1 of 5 rows are wrong"),
        ("decoded", [0.0, -0.1, 0.0, 0.0, 0.0], "decoded: outside 0..1 in row 1"),
        ("decoded", [0.0, torch.nan, 0.0, 0.0, 0.0], "decoded: not a finite number"),
        ("decoded", [0.0, 1.0], r"decoded: expected shape \(5,\) for 5 rounds, got \(2,\)"),
        ("predictions", torch.zeros(N), r"predictions: expected shape \(5, 3\)"),
        ("predictions", torch.full((N, K), 2.0), "predictions: outside 0..1 in row 0"),
        ("confidence", 95, "confidence: expected a number between 0 and 1, such as 0.95, got 95"),
        ("planned", 0, "planned: expected a whole number, at least 1, got 0"),
        ("probabilities", torch.tensor([[0.0, 0.5, 0.5]] * N), "action that was taken has probability zero in row 0"),
        ("probabilities", torch.full((N, 1), 1.0), "actions: expected at least two actions"),
        ("probabilities", torch.full((N,), 0.5), "expected the probability of every action"),
        ("actions", torch.zeros(0, dtype=torch.long), "columns differ in length"),
    ],
)
def test_bad_input_is_named(name, wrong, problem):
    good: dict[str, Any] = {
        "actions": torch.zeros(N, dtype=torch.long), "probabilities": GOOD, "decoded": torch.zeros(N), "policy": GOOD,
        "predictions": GOOD,
    }  # fmt: skip
    given = good | {name: wrong}
    rounds = Interactions(torch.zeros(N), given.pop("actions"), given.pop("probabilities"), torch.zeros(N))
    with pytest.raises(InvalidInputError, match=problem):
        doubly_robust(rounds, **given)


def test_an_empty_log_says_nothing():
    rounds = log_of(torch.zeros(0, dtype=torch.long), torch.zeros(0, K))
    with pytest.raises(InvalidInputError, match="the log is empty"):
        ips(rounds, [], torch.zeros(0, K))


def test_a_policy_is_taken_to_sum_to_one_exactly():
    rounds = log_of(torch.zeros(N, dtype=torch.long), GOOD)
    log = Weighted.of(rounds, GOOD * 1.0005, None)
    torch.testing.assert_close(log.policy.sum(1), torch.ones(N, dtype=torch.float64))
