"""Vovk's aggregating algorithm: its regret bound holds whatever happens, its predictions stay inside of the class."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import CorruptFileError, InvalidInputError
from tacit.oracles import VovkOracle, vovk
from tacit.oracles.vovk import regret_bound

SIZES = st.tuples(st.integers(1, 6), st.integers(1, 3), st.integers(2, 3), st.integers(1, 60), st.integers(0, 2**32))


def candidates(number: int, X: int, K: int, source: torch.Generator) -> torch.Tensor:
    return torch.rand(number, X, K, generator=source, dtype=torch.float64)


def regret(f: torch.Tensor, rounds, reward) -> float:
    """Summed squared loss minus the best candidate's; `reward` answers to the prediction made."""
    oracle = VovkOracle(f)
    lost, losses = 0.0, torch.zeros(len(f), dtype=torch.float64)
    for x, a in rounds:
        predicted = float(oracle.predict(x[None])[0, a])
        r = reward(predicted, x, a)
        lost += (predicted - r) ** 2
        losses += (f[:, x, a] - r) ** 2
        oracle.update(x[None], a[None], torch.tensor([r], dtype=torch.float64))
    return lost - float(losses.min())


@pytest.mark.parametrize("chunk", [7, 2_048])
def test_to_learn_again_is_to_learn_those_rounds_and_no_others(monkeypatch, source, chunk):
    monkeypatch.setattr(vovk, "CHUNK", chunk)
    f = candidates(5, 3, 2, source)
    contexts, actions = torch.randint(3, (60,), generator=source), torch.randint(2, (60,), generator=source)
    before, decoded = torch.rand(2, 60, generator=source, dtype=torch.float64)
    again, fresh = VovkOracle(f), VovkOracle(f)
    again.update(contexts, actions, before)
    again.relearn(contexts, actions, decoded)
    fresh.update(contexts, actions, decoded)
    # Summed in parts or at once: the same but for rounding.
    torch.testing.assert_close(again.tensors(), fresh.tensors(), atol=1e-12, rtol=1e-12)


def test_exploration_rounds_pass_it_by(source):
    f = candidates(5, 3, 2, source)
    warm = VovkOracle(f)
    warm.warm_up(torch.zeros(9).long(), torch.zeros(9).long(), torch.ones(9), None)
    assert torch.equal(warm.tensors()["log_weights"], VovkOracle(f).tensors()["log_weights"])


def drawn(sizes):
    number, X, K, T, seed = sizes
    source = torch.Generator().manual_seed(seed)
    f = candidates(number, X, K, source)
    rounds = [(torch.randint(X, (), generator=source), torch.randint(K, (), generator=source)) for _ in range(T)]
    return f, rounds, source


@given(SIZES)
def test_the_regret_bound_holds_for_random_rewards(sizes):
    f, rounds, source = drawn(sizes)
    assert regret(f, rounds, lambda *_: float(torch.rand((), generator=source))) <= regret_bound(len(f)) + 1e-9


@given(SIZES)
def test_the_regret_bound_holds_against_an_adversary(sizes):
    """The reward is always the end of the scale that is farther from what was predicted."""
    f, rounds, _ = drawn(sizes)
    assert regret(f, rounds, lambda predicted, x, a: float(predicted < 0.5)) <= regret_bound(len(f)) + 1e-9


@given(SIZES, st.integers(0, 5))
def test_the_regret_bound_holds_where_one_candidate_is_right(sizes, truth):
    f, rounds, _ = drawn(sizes)
    assert regret(f, rounds, lambda _, x, a: float(f[truth % len(f), x, a])) <= regret_bound(len(f)) + 1e-9


def test_the_regret_bound_is_2_log_f():
    assert regret_bound(10) == pytest.approx(2 * math.log(10))


@given(SIZES)
def test_predictions_stay_between_the_candidates(sizes):
    f, rounds, source = drawn(sizes)
    oracle = VovkOracle(f)
    for x, a in rounds:
        oracle.update(x[None], a[None], torch.rand(1, generator=source))
    every = torch.arange(f.shape[1])
    predicted = oracle.predict(every)
    assert (predicted >= f.amin(0) - 1e-12).all()
    assert (predicted <= f.amax(0) + 1e-12).all()


def test_a_batch_is_its_rounds_in_any_order(source):
    f = candidates(5, 3, 4, source)
    n = 40
    rounds = (
        torch.randint(3, (n,), generator=source), torch.randint(4, (n,), generator=source),
        torch.rand(n, generator=source),
    )
    every = torch.arange(3)
    at_once, shuffled, one_by_one = VovkOracle(f), VovkOracle(f), VovkOracle(f)
    at_once.update(*rounds)
    order = torch.randperm(n, generator=source)
    shuffled.update(*(column[order] for column in rounds))
    for i in range(n):
        one_by_one.update(*(column[i : i + 1] for column in rounds))
    torch.testing.assert_close(shuffled.predict(every), at_once.predict(every))
    torch.testing.assert_close(one_by_one.predict(every), at_once.predict(every))


def test_the_weights_of_a_million_rounds_still_sum_to_one_and_can_still_change():
    f = torch.tensor([[[0.9, 0.1]], [[0.1, 0.9]]])
    oracle = VovkOracle(f)
    n = 10_000
    for batch in range(100):
        a = torch.full((n,), batch % 2)
        oracle.update(torch.zeros(n, dtype=torch.long), a, (a == 0).float())
        assert float(oracle.tensors()["log_weights"].exp().sum()) == pytest.approx(1)
    assert oracle.predict(torch.tensor([0]))[0].tolist() == pytest.approx([0.9, 0.1])
    # The world turns round, and stays so for longer.
    for batch in range(110):
        a = torch.full((n,), batch % 2)
        oracle.update(torch.zeros(n, dtype=torch.long), a, (a == 1).float())
    assert oracle.predict(torch.tensor([0]))[0].tolist() == pytest.approx([0.1, 0.9])


def test_the_warm_up_is_passed_because_the_theorem_counts_from_after_exploration(source):
    oracle = VovkOracle(candidates(3, 2, 2, source))
    before = oracle.predict(torch.tensor([0, 1]))
    oracle.warm_up(torch.tensor([0]), torch.tensor([1]), torch.tensor([1.0]))
    assert torch.equal(oracle.predict(torch.tensor([0, 1])), before)


@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_indices_of_any_integer_type_mean_the_same(source, kind):
    f = candidates(4, 3, 2, source)
    wide, narrow = VovkOracle(f), VovkOracle(f)
    x, a, r = torch.tensor([2, 0, 1]), torch.tensor([1, 0, 1]), torch.tensor([1.0, 0.0, 0.5])
    wide.update(x, a, r)
    narrow.update(x.to(kind), a.to(kind), r)
    assert torch.equal(narrow.predict(x.to(kind)), wide.predict(x))


@pytest.mark.parametrize(
    ("contexts", "actions", "decoded", "argument"),
    [
        ([3], [0], [0.5], "contexts"),
        ([-1], [0], [0.5], "contexts"),
        ([0.0], [0], [0.5], "contexts"),
        ([0], [2], [0.5], "actions"),
        ([0], [-1], [0.5], "actions"),
        ([0], [0], [1.1], "decoded"),
        ([0], [0], [-0.1], "decoded"),
        ([0], [0], [math.nan], "decoded"),
        ([0], [0], [0.5, 0.5], "decoded"),
        ([0, 1], [0], [0.5], "decoded"),
    ],
)
def test_rounds_that_cannot_be_are_refused_and_change_nothing(source, contexts, actions, decoded, argument):
    oracle = VovkOracle(candidates(4, 3, 2, source))
    before = oracle.tensors()["log_weights"].clone()
    with pytest.raises(InvalidInputError) as refusal:
        oracle.update(torch.tensor(contexts), torch.tensor(actions), torch.tensor(decoded))
    assert refusal.value.argument == argument
    assert torch.equal(oracle.tensors()["log_weights"], before)


@pytest.mark.parametrize(
    "f",
    [
        torch.zeros(2, 3), torch.zeros(0, 2, 3), torch.full((1, 2, 3), 1.5), torch.full((1, 2, 3), -0.5),
        torch.full((1, 2, 3), math.nan), torch.zeros(1, 2, 3, dtype=torch.long),
    ],
)  # fmt: skip
def test_a_class_that_is_not_of_numbers_from_0_to_1_is_refused(f):
    with pytest.raises(InvalidInputError):
        VovkOracle(f)


@pytest.mark.parametrize(
    "tensors",
    [
        {}, {"weights": torch.zeros(4)}, {"log_weights": torch.zeros(5)}, {"log_weights": torch.full((4,), math.nan)},
        {"log_weights": torch.zeros(4, dtype=torch.long)},
    ],
)  # fmt: skip
def test_weights_of_another_class_are_not_restored(source, tensors):
    with pytest.raises(CorruptFileError):
        VovkOracle(candidates(4, 3, 2, source)).restore(tensors)
