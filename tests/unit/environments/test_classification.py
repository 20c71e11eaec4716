"""Labelled data as interaction: the paper's feedback, rewards that are left to chance, and the order of examples."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tacit.encoders import Category, Problem, Table
from tacit.environments.classification import Classification, FeedbackRule, Labelled, Neighbour, Signs
from tacit.errors import InvalidInputError
from tacit.interactions import HiddenReward
from tacit.seeding import generator

K = 10
EACH = 5  # examples of each class
SPACE = Table(1)


def examples(classes: int = K, each: int = EACH) -> Labelled:
    """An example says its class and its number within it: 10,000 class + number."""
    labels = torch.arange(classes).repeat(each)
    numbers = torch.arange(each).repeat_interleave(classes)
    return Labelled((10_000.0 * labels + numbers)[:, None], labels, classes)


def environment(seed: int = 0, rule: FeedbackRule | None = None, each: int = EACH, **chances: float) -> Classification:
    train = examples(each=each)
    return Classification(train, examples(each=2), SPACE, rule or Neighbour(train, SPACE), seed, **chances)


def classes_of(values: Tensor) -> Tensor:
    return (values[:, 0] / 10_000).long()


def play(made: Classification, choose, rounds: int = K * EACH, batch: int = 7) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Contexts, actions, feedback and hidden rewards of a stream; `choose` makes actions from labels."""
    rows = []
    for arrival in made.stream(rounds, batch):
        actions = choose(classes_of(arrival.contexts))
        feedback, hidden = arrival.react(actions)
        assert isinstance(hidden, HiddenReward)
        rows.append((arrival.contexts, actions, feedback, hidden.values))
    contexts, actions, feedback, rewards = (torch.cat(column) for column in zip(*rows, strict=True))
    return contexts, actions, feedback, rewards


# -- the paper's feedback ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", range(K))
def test_feedback_is_the_next_class_when_right_and_the_previous_when_wrong(shift):
    contexts, _, feedback, rewards = play(environment(), lambda labels: (labels + shift) % K)
    labels = classes_of(contexts)
    assert bool((rewards == (shift == 0)).all())
    assert torch.equal(classes_of(feedback), (labels + (1 if shift == 0 else -1)) % K)


@pytest.mark.parametrize("rule", [None, Signs.personal(K, generator(0, "signs"))], ids=["neighbour", "signs"])
@pytest.mark.parametrize("chances", [{}, {"right": 0.8, "wrong": 0.2}], ids=["certain", "by chance"])
def test_given_the_reward_feedback_does_not_depend_on_the_action(rule, chances):
    played = [
        play(environment(rule=rule, **chances), lambda labels, shift=shift: (labels + shift) % K) for shift in (1, 2, 7)
    ]
    for _, _, feedback, rewards in played[1:]:
        assert torch.equal(rewards, played[0][3])
        assert torch.equal(feedback, played[0][2])


def test_any_example_of_a_class_is_shown_as_often_as_another(source):
    # 20,000 by a fixed seed: each of five examples 4,000 times, give or take four standard deviations.
    rule = Neighbour(examples(), SPACE)
    shown = rule.feedback(torch.full((20_000,), 3), torch.ones(20_000), source)
    assert set(classes_of(shown).tolist()) == {4}
    counts = (shown[:, 0] % 10_000).long().bincount(minlength=EACH)
    assert bool(((counts - 4_000).abs() < 4 * (4_000 * 0.8) ** 0.5).all())


def test_classes_of_different_size_are_kept_apart(source):
    labels = torch.tensor([2, 0, 2, 1, 2, 0])
    rule = Neighbour(Labelled(10_000.0 * labels[:, None], labels, 3), SPACE)
    wanted, rewards = torch.arange(3).repeat(50), torch.tensor([0.0, 1.0]).repeat(75)
    shown = classes_of(rule.feedback(wanted, rewards, source))
    assert torch.equal(shown, (wanted + torch.where(rewards > 0, 1, -1)) % 3)


def test_a_class_without_examples_cannot_be_shown():
    with pytest.raises(InvalidInputError, match="examples: every class needs at least one"):
        Neighbour(examples()[slice(0, 9)], SPACE)


# -- the stream --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 7, 50, 1_000])
def test_each_training_example_comes_once(batch):
    contexts, *_ = play(environment(), lambda labels: labels, batch=batch)
    assert sorted(contexts[:, 0].tolist()) == sorted(examples().contexts[:, 0].tolist())


@pytest.mark.parametrize(("rounds", "batch", "sizes"), [(10, 4, [4, 4, 2]), (8, 4, [4, 4]), (3, 10, [3])])
def test_a_stream_is_as_long_as_asked_for(rounds, batch, sizes):
    assert [len(arrival.contexts) for arrival in environment().stream(rounds, batch)] == sizes


def test_the_same_seed_gives_the_same_stream_again():
    def choose(labels: Tensor) -> Tensor:
        return labels * 3 % K

    first = play(environment(seed=4, right=0.9, wrong=0.3), choose)
    made = environment(seed=4, right=0.9, wrong=0.3)
    for again in (play(made, choose), play(made, choose)):
        assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))


def test_the_order_and_the_contexts_do_not_depend_on_the_batch():
    assert torch.equal(play(environment(), lambda a: a, batch=3)[0], play(environment(), lambda a: a, batch=50)[0])


def test_another_seed_gives_another_order():
    first, second = (play(environment(seed), lambda labels: labels)[0] for seed in (0, 1))
    assert not torch.equal(first, second)


@pytest.mark.parametrize(
    ("rounds", "batch", "message"),
    [
        (51, 10, "rounds: each example comes once, and there are 50; got 51"),
        (0, 10, "rounds: expected a whole number, at least 1"),
        (10, 0, "batch: expected a whole number, at least 1"),
        (10, -1, "batch: expected a whole number, at least 1"),
        (10, 2.0, "batch: expected a whole number, at least 1"),
    ],
)
def test_a_stream_that_cannot_be_is_refused(rounds, batch, message):
    with pytest.raises(InvalidInputError, match=message):
        next(environment().stream(rounds, batch))


WRONG_ACTIONS = [
    (torch.tensor([0, 1]), "actions: expected one per decision, 3, got 2"),
    (torch.tensor([0]), "actions: expected one per decision, 3, got 1"),
    (torch.tensor([[0], [1], [2]]), "actions: expected a column of integers"),
    (torch.tensor([0.0, 1.0, 2.0]), "actions: expected a column of integers"),
    (torch.tensor([0, 10, 2]), r"actions: outside 0\.\.9 \(found 10\) in row 1"),
]


@pytest.mark.parametrize(("actions", "message"), WRONG_ACTIONS)
def test_actions_that_do_not_answer_the_contexts_are_refused(actions, message):
    arrival = next(environment().stream(3, 3))
    with pytest.raises(InvalidInputError, match=message):
        arrival.react(actions)
    held = Classification(examples(), examples()[slice(0, 3)], SPACE, Neighbour(examples(), SPACE), 0).held_out()
    with pytest.raises(InvalidInputError, match=message):
        held.reward(actions)


# -- rewards -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("right", "wrong"), [(1.0, 0.0), (0.85, 0.03), (0.6, 0.5)])
def test_rewards_come_as_often_as_they_should(right, wrong):
    # 20,000 rounds by a fixed seed; four standard deviations.
    made = environment(each=2_000, right=right, wrong=wrong)
    contexts, actions, _, rewards = play(made, lambda labels: labels // 2 * 2, K * 2_000, batch=500)
    hit = classes_of(contexts) == actions
    assert set(rewards.tolist()) <= {0.0, 1.0}
    for chance, chosen in ((right, rewards[hit]), (wrong, rewards[~hit])):
        assert len(chosen) > 1_000
        assert float(chosen.mean()) == pytest.approx(chance, abs=4 * (chance * (1 - chance) / len(chosen)) ** 0.5)


@pytest.mark.parametrize(
    ("right", "wrong"), [(0.5, 0.5), (0.4, 0.6), (1.1, 0.0), (0.5, -0.1), (float("nan"), 0.0), (1.0, float("nan"))]
)
def test_chances_that_make_the_right_label_no_better_are_refused(right, wrong):
    with pytest.raises(InvalidInputError, match="right: expected 0 <= wrong < right <= 1"):
        environment(right=right, wrong=wrong)


def test_a_policy_is_scored_on_held_out_examples_by_their_labels():
    held = environment(right=0.6, wrong=0.1).held_out()
    labels = classes_of(held.contexts)
    assert len(labels) == 2 * K
    assert held.reward(labels).values.tolist() == [1.0] * 2 * K
    assert held.reward(torch.zeros_like(labels)).values.tolist() == (labels == 0).float().tolist()


def test_the_problem_is_that_of_the_data_and_the_rule():
    made = environment()
    assert made.problem == Problem(K, SPACE, SPACE)
    assert made.horizon == K * EACH


@pytest.mark.parametrize("name", ["train", "test"])
@pytest.mark.parametrize("contexts", [torch.zeros(10, 2), torch.full((10, 1), float("nan"))], ids=["shape", "NaN"])
def test_data_of_another_kind_than_its_space_is_refused(name, contexts):
    parts = {"train": examples(), "test": examples(), name: Labelled(contexts, torch.arange(K), K)}
    with pytest.raises(InvalidInputError, match=f"{name}: "):
        Classification(parts["train"], parts["test"], SPACE, Neighbour(examples(), SPACE), 0)


# -- labelled data -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("contexts", "labels", "message"),
    [
        (torch.zeros(3, 1), torch.tensor([0, 1]), "labels: expected one per example, got 2 for 3"),
        (torch.zeros(0, 1), torch.tensor([], dtype=torch.int64), "labels: expected one per example, got 0 for 0"),
        (torch.zeros(3, 1), torch.tensor([0, 10, 1]), r"labels: outside 0\.\.9 \(found 10\) in row 1"),
        (torch.zeros(3, 1), torch.tensor([0, 1, -1]), r"labels: outside 0\.\.9 \(found -1\) in row 2"),
        (torch.zeros(3, 1), torch.tensor([0.0, 1.0, 2.0]), r"labels: expected integers in 0\.\.9"),
        (torch.zeros(3, 1), torch.zeros(3, 1, dtype=torch.int64), r"labels: expected shape \(rounds\), got \(3, 1\)"),
    ],
)
def test_labels_that_do_not_fit_are_refused(contexts, labels, message):
    with pytest.raises(InvalidInputError, match=message):
        Labelled(contexts, labels, K)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
@pytest.mark.parametrize("rule", ["neighbour", "signs"])
def test_labels_of_any_integer_type_are_the_same_labels(dtype, rule):
    played = []
    for labels in (examples().labels, examples().labels.to(dtype)):
        train = Labelled(examples().contexts, labels, K)
        made = Neighbour(train, SPACE) if rule == "neighbour" else Signs.personal(K, generator(0, "signs"))
        played.append(play(Classification(train, train, SPACE, made, 0), lambda labels: labels // 2))
    assert all(torch.equal(one, other) for one, other in zip(*played, strict=True))


def test_part_of_labelled_data_keeps_what_belongs_together():
    part = examples()[torch.tensor([3, 17])]
    assert (len(part), part.labels.tolist(), part.contexts[:, 0].tolist()) == (2, [3, 7], [30_000.0, 70_001.0])
    assert part.to("cpu").labels.tolist() == [3, 7]


# -- signs -------------------------------------------------------------------------------------------------------------


def test_personal_signs_differ_within_a_class_and_nearly_always_say_what_is_meant(source):
    # 40,000 signs by a fixed seed; four standard deviations.
    n = 40_000
    rule = Signs.personal(K, source)
    assert rule.space == Category(4)
    usual = {}
    for label in range(K):
        for reward in (0.0, 1.0):
            drawn = rule.feedback(torch.full((n,), label), torch.full((n,), reward), source).bincount(minlength=4)
            usual[label, reward] = int(drawn.argmax())
            expected = torch.full((4,), 0.025)
            expected[drawn.argmax()] = 0.925
            assert bool(((drawn / n - expected).abs() < 4 * (expected * (1 - expected) / n).sqrt()).all())
    assert all(usual[label, 0.0] != usual[label, 1.0] for label in range(K))
    assert len({(usual[label, 0.0], usual[label, 1.0]) for label in range(K)}) > 1


def test_a_sign_without_a_chance_is_never_sent(source):
    chances = torch.tensor([[[0.0, 0.5, 0.0, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]]])
    labels = torch.zeros(10_000, dtype=torch.int64)
    rule = Signs(chances)
    assert set(rule.feedback(labels, torch.zeros(10_000), source).tolist()) == {1, 3}
    assert set(rule.feedback(labels, torch.ones(10_000), source).tolist()) == {2}


@pytest.mark.parametrize(
    ("chances", "message"),
    [
        (torch.full((2, 4), 0.25), "chances: expected shape"),
        (torch.full((2, 3, 4), 0.25), "chances: expected shape"),
        (torch.full((2, 2, 4), 0.3), "do not sum to 1"),
        (torch.tensor([[[1.5, -0.5]] * 2]), "is negative"),
        (torch.full((2, 2, 4), float("nan")), "not a finite number"),
        (torch.ones(2, 2, 1), "at least two"),
    ],
)
def test_chances_of_signs_that_are_none_are_refused(chances, message):
    with pytest.raises(InvalidInputError, match=message):
        Signs(chances)


def test_one_sign_alone_can_say_nothing(source):
    with pytest.raises(InvalidInputError, match="expected shape"):
        Signs.personal(3, source, signs=1)


# -- splits ------------------------------------------------------------------------------------------------------------


def test_a_split_shows_four_fifths_as_often_as_wanted_and_keeps_the_rest():
    train, test = examples().split(seed=0, passes=3)
    assert (len(train), len(test)) == (3 * 40, 10)
    shown, counts = train.contexts.unique(return_counts=True)
    assert counts.tolist() == [3] * 40
    assert sorted([*shown.tolist(), *test.contexts[:, 0].tolist()]) == sorted(examples().contexts[:, 0].tolist())


def test_a_split_is_the_seeds():
    first, again, other = (examples().split(seed, 1)[1].contexts for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_split_that_shows_nothing_is_refused():
    with pytest.raises(InvalidInputError, match="passes: expected a whole number, at least 1, got 0"):
        examples().split(seed=0, passes=0)
