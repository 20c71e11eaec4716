"""Each check speaks in the world it is meant for, and none speaks in a healthy one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

import tacit
from tacit.decoder import Decoder
from tacit.health import Health, Sample, examine
from tacit.health.statistics import LEVEL
from tests.unit.health.made import BEST, CONTEXTS, LATER, SIGNS, UNIFORM, Ill, K, made

HALF = torch.nn.functional.one_hot(BEST, K) + torch.nn.functional.one_hot((BEST + 1) % K, K)


def report(ill: Ill | None = None, **settings: Any) -> Health:
    return examine(*(made(**settings) if ill is None else made(ill, **settings)))


def where(condition: Callable, other: Callable) -> Ill:
    """The usual feedback but for rounds where the condition holds."""
    return lambda seen: torch.where(condition(seen), other(seen), seen.feedback)


def named(seen: Any) -> torch.Tensor:
    """Feedback that is the name of the action."""
    return SIGNS + seen.actions


def repeated(seen: Any) -> torch.Tensor:
    return seen.feedback[seen.when // 5 * 5]


ACTING = where(lambda seen: seen.when >= UNIFORM, lambda seen: seen.opposite())
ILLS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "few rounds": ("rounds", "watch", {"uniform": 100, "later": 0, "exploring": True}),
    "everybody says the same": ("constant", "broken", {"ill": lambda seen: torch.ones_like(seen.when)}),
    "one feedback for five decisions": ("repeats", "broken", {"ill": repeated}),
    "another policy than logged": ("draws", "broken", {"drawn": 0.4}),
    "feedback of other rounds": ("chance", "broken", {"ill": lambda seen: seen.anything(), "exploring": True}),
    "reactions that contradict the reward": (
        "margin", "broken", {"ill": where(lambda seen: seen.chance() < 0.35, lambda seen: seen.opposite())}
    ),
    "wrong actions as good as the right one": ("margin", "broken", {"f": 0.4 + 0.3 * (HALF > 0)}),
    "half of the actions are right": ("rarity", "broken", {"f": HALF.float(), "decoder": Decoder(0.5, 0.2)}),
    "signs that turned round": ("sign", "broken", {"ill": ACTING}),
    "signs that turned round, for calibration": ("calibration", "broken", {"ill": ACTING}),
    "signs that turned round, over time": ("drift", "broken", {"ill": ACTING}),
    "feedback that names the action": (
        "trace", "broken", {"ill": where(lambda seen: seen.chance() < 0.4, named)}
    ),
    "signs that turned round while exploring": (
        "drift", "broken", {"ill": where(lambda seen: seen.when > UNIFORM // 2, lambda seen: seen.opposite())}
    ),
    "noise once the policy acts": (
        "drift", "broken", {"ill": where(lambda seen: seen.when >= UNIFORM, lambda seen: seen.anything())}
    ),
    "noise in one context": (
        "segments", "broken", {"ill": where(lambda seen: seen.contexts == 3, lambda seen: seen.anything())}
    ),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ILLS)
def test_a_check_speaks_in_its_world(name, seed):
    check, severity, settings = ILLS[name]
    found = report(seed=seed, **settings)
    assert found[check].severity == severity
    assert check in found.spoke
    assert found[check].finding in str(found).replace("\n" + " " * 23, " ")


@pytest.mark.parametrize(
    "settings",
    [{}, {"f": 0.05 + 0.8 * torch.nn.functional.one_hot(BEST, K)}, {"later": 0, "uniform": 3_000}],
    ids=["certain reward", "uncertain reward", "a log"],
)
def test_no_check_speaks_in_a_healthy_world(settings):
    """Twenty reports of a level of one in a hundred: a single alarm is allowed, in all of them."""
    flagged = [seed for seed in range(20) if report(seed=seed, **settings).verdict != "ok"]
    assert len(flagged) <= 1
    assert LEVEL == 0.01


def test_all_questions_are_asked_where_there_is_enough_to_go_by():
    found = report()
    assert [check.name for check in found.checks if "not asked" in check.finding] == []
    assert found.rounds == UNIFORM + LATER
    assert found.uniform == UNIFORM


@pytest.mark.parametrize("seed", range(3))
def test_rounds_of_a_policy_that_leaves_hardly_anything_to_chance_are_not_judged_by(seed):
    """A handful of other actions among a thousand: their standard error would be a guess."""
    subject, sample = made(ACTING, seed=seed)
    seen = sample.kept()
    taken = torch.nn.functional.one_hot(seen.rounds.actions, K)
    greedy = torch.where(seen.uniform[:, None], 1 / K, 0.001 + 0.996 * taken)
    sure, rounds = Sample(), replace(seen.rounds, probabilities=greedy)
    sure.add(rounds, torch.where(seen.uniform, torch.nan, 0.5))
    found = examine(subject, sure)
    assert found["sign"].finding.startswith("not asked")
    assert "since the decoder was learned" not in found["calibration"].finding
    # As ever where there is enough to judge by.
    assert examine(subject, sample)["sign"].severity == "broken"


def test_too_few_rounds_raise_no_other_alarm():
    assert report(uniform=100, later=0, exploring=True).spoke == ("rounds",)


def test_asking_changes_nothing_and_says_the_same_again():
    subject, sample = made()
    before = {name: value.clone() for name, value in sample.tensors().items()}
    assert str(examine(subject, sample)) == str(examine(subject, sample))
    torch.testing.assert_close(sample.tensors(), before)


def test_the_verdict_is_the_worst_of_all_and_the_worst_comes_first():
    found = report(ACTING)
    assert found.verdict == "broken"
    first = str(found).splitlines()[2]
    assert first.split()[:2] == ["broken", found.spoke[0]]
    assert str(found).startswith("health: broken")


def test_advice_is_given_with_what_is_wrong_only():
    found = report(ACTING)
    assert found["sign"].advice.split(":")[0] in str(found)
    assert "Check the join" not in str(found)


def test_a_check_that_there_is_not_is_refused_by_name():
    with pytest.raises(tacit.InvalidInputError, match="no check 'drifts' in this report"):
        report()["drifts"]


def test_with_nothing_learned_from_it_says_so():
    found = tacit.OnPolicy(K, tacit.Category(CONTEXTS), tacit.Category(3), explore=10).health()
    assert (found.verdict, found.spoke, found.rounds) == ("watch", ("rounds",), 0)


def test_an_action_that_reveals_nothing_more_is_no_trace_though_several_are_good():
    """The second best action is good with .4: feedback tells the two apart from the others, through reward alone."""
    second = torch.nn.functional.one_hot((BEST + 1) % K, K)
    f = 0.55 * torch.nn.functional.one_hot(BEST, K) + 0.4 * second
    assert report(f=f, decoder=Decoder.from_assumption(0.95, 0.55, K))["trace"].severity == "ok"


@pytest.mark.parametrize("space", [tacit.Table(3), tacit.Image(4, 4)], ids=["table", "image"])
def test_other_kinds_of_feedback_are_compared_over_time_by_rank(space):
    subject, sample = made(ACTING)
    kept = sample.kept()
    shape = (len(kept), *space.shape)
    numbers = kept.rounds.feedback.double().view(-1, *[1] * len(space.shape)).expand(shape).exp()
    subject, sample = made(ACTING)
    table = replace(kept.rounds, feedback=numbers)
    evidence = tacit.health.evidence.Evidence(
        replace(subject, problem=replace(subject.problem, feedback=space)), sample, replace(kept, rounds=table)
    )
    assert tacit.health.checks.drift(evidence).severity == "broken"
