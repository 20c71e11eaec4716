"""Rounds as columns: what is accepted, what is refused and how, and what never gets in."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import torch

from tacit.errors import InvalidInputError
from tacit.interactions import (
    Decision,
    HiddenReward,
    Interactions,
    as_tensor,
    check_action_count,
    check_actions,
    check_count,
    check_finite,
    check_interactions,
    check_positive_count,
    checked_before,
)  # fmt: skip


def columns(**changed: object) -> dict[str, object]:
    """Three good rounds with two actions, and whatever is to be wrong with them."""
    good = {
        "contexts": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]],
        "actions": [0, 1, 0],
        "probabilities": [[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]],
        "feedback": [7.0, 8.0, 9.0],
    }
    return good | changed


def decision() -> Decision:
    return Decision(
        "stream", np.arange(10, 15), torch.arange(5.0)[:, None], torch.arange(5), torch.full((5, 5), 0.2)
    )


def test_rounds_are_read_from_lists_arrays_and_tensors_alike():
    listed = Interactions.of(**columns())
    for read in (np.asarray, torch.as_tensor):
        rounds = Interactions.of(**{name: read(column) for name, column in columns().items()})
        for field in fields(Interactions):
            assert torch.equal(getattr(rounds, field.name).double(), getattr(listed, field.name).double()), field.name


def test_rounds_know_their_number_and_their_actions():
    rounds = Interactions.of(**columns())
    assert (len(rounds), rounds.action_count) == (3, 2)


def test_part_of_the_rounds_can_be_taken_and_put_together_again():
    rounds = Interactions.of(**columns())
    again = Interactions.concatenate([rounds[slice(0, 1)], rounds[torch.tensor([1, 2])]])
    for field in fields(Interactions):
        assert torch.equal(getattr(again, field.name), getattr(rounds, field.name))


def test_rounds_move_to_a_device_as_a_whole():
    rounds = Interactions.of(**columns()).to("meta")
    assert {getattr(rounds, field.name).device.type for field in fields(rounds)} == {"meta"}


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint16, np.int32, np.uint32, np.uint64, np.int64])
def test_actions_of_any_integer_type_become_indices(dtype):
    rounds = Interactions.of(**columns(actions=np.array([0, 1, 0], dtype)))
    assert rounds.actions.dtype == torch.int64
    assert rounds.actions.tolist() == [0, 1, 0]


REFUSED = {
    "columns of different length": (columns(feedback=[1.0]), "interactions: columns differ in length"),
    "a single number for a column": (columns(feedback=1.0), "interactions: columns differ in length.*'feedback': 0"),
    "an empty log": (
        columns(contexts=[], actions=[], probabilities=np.zeros((0, 2)), feedback=[]),
        "interactions: the log is empty",
    ),
    "NaN in the contexts": (
        columns(contexts=[[0.0, 1.0], [2.0, float("nan")], [4.0, 5.0]]),
        "contexts: not a finite number.* in row 1; 1 of 3 rows are wrong; leave such rounds out",
    ),
    "infinity in the feedback": (
        columns(feedback=[1.0, float("-inf"), float("inf")]),
        "feedback: not a finite number.* in row 1; 2 of 3 rows",
    ),
    "NaN in the probabilities": (
        columns(probabilities=[[0.5, 0.5], [0.5, 0.5], [float("nan"), 1.0]]), "probabilities: not a finite .* in row 2",
    ),
    "an action too high": (
        columns(actions=[0, 2, 0]), r"actions: outside 0\.\.1 \(found 2\) in row 1; 1 of 3 rows are wrong; number them",
    ),
    "an action below zero": (columns(actions=[-1, 0, 0]), r"actions: outside 0\.\.1 \(found -1\) in row 0"),
    "actions that are not whole": (columns(actions=[0.0, 1.0, 0.0]), "actions: expected a column of integers"),
    "truth values for actions": (columns(actions=[True, False, True]), "actions: expected a column of integers"),
    "actions in two columns": (columns(actions=[[0], [1], [0]]), "actions: expected a column of integers"),
    "probabilities of the taken action alone": (
        columns(probabilities=[0.5, 0.5, 0.5]), "probabilities: expected the probability of every action",
    ),
    "whole probabilities": (columns(probabilities=[[1, 0]] * 3), "probabilities: expected the probability of every"),
    "a negative probability": (
        columns(probabilities=[[0.5, 0.5], [-0.5, 1.5], [1.0, 0.0]]),
        "probabilities: a probability is negative in row 1",
    ),
    "probabilities that do not sum to 1": (
        columns(probabilities=[[0.5, 0.5], [0.5, 0.5], [0.5, 0.25]]),
        r"probabilities: they do not sum to 1 \(found 0\.75\) in row 2; .* probability of every action",
    ),
    "an action that could not be drawn": (
        columns(actions=[0, 1, 1]), "probabilities: the action that was taken has probability zero in row 2; .* log",
    ),
    "one action only": (
        columns(actions=[0, 0, 0], probabilities=[[1.0]] * 3), "actions: expected at least two .* there is no choice",
    ),
    "no probabilities": (columns(probabilities=None), r"probabilities: the log does not say .*uniform over K.*1/K"),
    "text": (columns(feedback=["good", "bad", "good"]), "feedback: cannot be read as an array of numbers: found <U4"),
    "bytes": (columns(contexts=[b"a", b"b", b"c"]), "contexts: cannot be read as an array of numbers: found "),
    "a gap": (columns(feedback=[1.0, None, 2.0]), "feedback: cannot be read .* found object"),
    "rows of different width": (columns(contexts=[[0.0], [1.0, 2.0], [3.0]]), "contexts: cannot be read as an array"),
    "dates": (
        columns(contexts=np.array(["2026-01-01"] * 3, "datetime64[D]")), "contexts: cannot be read .* found datetime64",
    ),
    "complex numbers": (columns(contexts=[1j, 2j, 3j]), "contexts: expected real numbers, got torch.complex128"),
    "the hidden reward as feedback": (columns(feedback=HiddenReward(torch.ones(3))), "feedback: cannot be read"),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_rounds_that_cannot_have_happened_are_refused_with(given, message):
    with pytest.raises(InvalidInputError, match=message) as caught:
        Interactions.of(**given)
    assert str(caught.value).startswith(f"{caught.value.argument}: ")


def test_rounding_in_the_probabilities_is_forgiven():
    third = np.full((3, 3), 0.3333)
    assert len(Interactions.of(**columns(actions=[0, 1, 2], probabilities=third))) == 3


@pytest.mark.parametrize(
    "array",
    [np.arange(6.0).reshape(3, 2)[:, ::-1], np.arange(3.0)[::-1], np.arange(3.0).astype(">f8"), np.array(2.5)],
    ids=["turned", "reversed", "of the other byte order", "a single number"],
)
def test_arrays_of_any_layout_are_read_as_they_are(array):
    assert as_tensor(array, "contexts").numpy().tolist() == array.tolist()
    assert as_tensor(array, "contexts").shape == array.shape


def test_read_only_arrays_are_copied_and_others_shared():
    array = np.zeros(3)
    as_tensor(array, "contexts")[0] = 1
    assert array[0] == 1
    array.flags.writeable = False
    as_tensor(array, "contexts")[1] = 1
    assert array[1] == 0


def test_tensors_are_taken_without_their_gradients():
    assert not as_tensor(torch.zeros(3, requires_grad=True), "contexts").requires_grad
    with pytest.raises(InvalidInputError, match="contexts: cannot be read"):
        as_tensor([torch.zeros(3, requires_grad=True)], "contexts")


@pytest.mark.parametrize(
    "rows",
    [slice(1, 4), slice(None, None, -2), [3, 0], np.array([4, 1]), np.array([True, False, True, False, True]), [], 3],
    ids=["a slice", "backwards", "a list", "an array", "a mask", "nothing", "one"],
)
def test_part_of_a_decision_keeps_what_belongs_together(rows):
    part = decision()[rows]
    picked = np.atleast_1d(np.arange(5)[rows])
    assert part.stream == "stream"
    assert part.ids.tolist() == (picked + 10).tolist()
    assert part.contexts[:, 0].tolist() == picked.tolist()
    assert part.actions.tolist() == picked.tolist()
    assert part.probabilities.shape == (len(picked), 5)


def test_the_hidden_reward_is_a_type_of_its_own():
    hidden = HiddenReward(torch.ones(4))
    assert len(hidden) == 4
    names = {field.name for kind in (Interactions, Decision) for field in fields(kind)}
    assert not any("reward" in name for name in names)
    assert not isinstance(hidden, torch.Tensor | Interactions | Decision)


def test_checks_of_values_are_left_out_for_data_that_passed_them_and_only_there():
    wrong = torch.tensor([float("nan")])
    with checked_before():
        check_finite(wrong, "contexts")
        check_actions(torch.tensor([7]), 2)
        with pytest.raises(InvalidInputError, match="column of integers"):
            check_actions(torch.tensor([0.5]), 2)  # types are looked at without waiting
    with pytest.raises(ZeroDivisionError), checked_before():
        1 / 0  # noqa: B018
    with pytest.raises(InvalidInputError, match="contexts: not a finite number"):
        check_finite(wrong, "contexts")
    with pytest.raises(InvalidInputError, match=r"actions: outside 0\.\.1"):
        check_actions(torch.tensor([7]), 2)


@pytest.mark.parametrize("count", [1, 0, -3, True, 2.0, "3", None])
def test_a_number_of_actions_that_leaves_no_choice_is_refused(count):
    with pytest.raises(InvalidInputError, match="actions: expected at least two actions"):
        check_action_count(count)


@pytest.mark.parametrize("count", [0, -1, True, 2.0, "3", None])
def test_a_count_that_is_not_positive_and_whole_is_refused(count):
    with pytest.raises(InvalidInputError, match="explore: expected a whole number, at least 1, got"):
        check_positive_count(count, "explore")


def test_a_positive_count_is_handed_back():
    assert check_positive_count(3, "explore") == 3


def test_feedback_that_does_not_match_its_decision_is_refused():
    check_count(torch.zeros(3), 3, "feedback")
    with pytest.raises(InvalidInputError, match="feedback: expected one per decision, 3, got 2"):
        check_count(torch.zeros(2), 3, "feedback")


@pytest.mark.parametrize(
    "values",
    [
        torch.eye(2).to_sparse(), torch.ones(2, 2, device="meta"), np.array([2**63], np.uint64),
        np.ma.array([1.0, 2.0], mask=[True, False]),
    ],
    ids=["sparse", "meta", "too large", "masked"],
)  # fmt: skip
def test_what_holds_no_plain_numbers_is_refused(values):
    with pytest.raises(InvalidInputError, match=r"^contexts: "):
        as_tensor(values, "contexts")


def test_eight_bit_floats_and_arrays_without_a_masked_value_are_read():
    assert as_tensor(torch.ones(2).to(torch.float8_e4m3fn), "contexts").tolist() == [1, 1]
    assert as_tensor(np.ma.array([1.0, 2.0]), "contexts").tolist() == [1, 2]


@pytest.mark.parametrize("log", [None, [1], np.zeros(3), Interactions(*map(np.ones, (3, 3, 3, 3)))])
def test_what_is_no_log_is_refused(log):
    with pytest.raises(InvalidInputError, match=r"Interactions\.of"):
        check_interactions(log)


def test_a_log_of_single_numbers_is_refused():
    with pytest.raises(InvalidInputError, match=r"^interactions: "):
        Interactions.of(contexts=1.0, actions=1, probabilities=1.0, feedback=1.0)


@pytest.mark.parametrize("rows", [None, True, [[0, 1]]])
def test_rows_of_a_decision_are_one_number_each(rows):
    with pytest.raises(InvalidInputError, match=r"^decision: "):
        decision()[rows]
