"""The exact inverse model: the best candidate of all, whatever policy drew the rounds to find it by."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.decoder import posterior
from tacit.environments.finite import FiniteEnvironment, function_classes, random_instance
from tacit.errors import CorruptFileError, InvalidInputError, NotFittedError
from tacit.inverse import FiniteInverse
from tacit.inverse.finite import count, logged_risks, risks
from tests import worlds


def model() -> FiniteInverse:
    classes = worlds.classes()
    return FiniteInverse(classes.f, classes.phi)


@pytest.fixture(scope="module")
def log() -> tacit.Interactions:
    return worlds.uniform_log(worlds.finite(), 3_000)


def brute_force(f, phi, log: tacit.Interactions) -> tuple[float, list[float]]:
    """The least loss by the definition, one candidate and one round at a time; and the losses of all candidates."""
    losses = []
    columns = (log.contexts, log.feedback, log.actions, log.probabilities.double())
    for rewards, meaning in product(f.tolist(), phi.tolist()):
        loss = 0.0
        for x, y, a, p in zip(*(column.tolist() for column in columns), strict=True):
            likely = [value if meaning[x][y] else 1 - value for value in rewards[x]]
            joint = [chance * value for chance, value in zip(p, likely, strict=True)]
            loss += sum((value / sum(joint) - (b == a)) ** 2 for b, value in enumerate(joint))
        losses.append(loss)
    return min(losses), losses


def log_of(contexts, feedback, actions, K: int) -> tacit.Interactions:
    return tacit.Interactions.of(
        contexts=contexts, actions=actions, probabilities=torch.full((len(actions), K), 1 / K), feedback=feedback
    )


@pytest.mark.parametrize("policy", ["uniform", "another in every round"])
@given(
    sizes=st.tuples(*[st.integers(1, 3)] * 2, *[st.integers(2, 3)] * 2, st.integers(1, 3), st.integers(1, 4)),
    rounds=st.integers(1, 12), seed=st.integers(0, 2**32),
)  # fmt: skip
def test_it_is_the_minimiser_that_brute_force_finds(policy, sizes, rounds, seed):
    candidates, X, K, Y, rivals, scale = sizes
    source = torch.Generator().manual_seed(seed)
    f = 0.05 + 0.9 * torch.rand(candidates, X, K, generator=source, dtype=torch.float64) / scale
    phi = torch.randint(0, 2, (rivals, X, Y), generator=source).double()
    log = log_of(*(torch.randint(size, (rounds,), generator=source) for size in (X, Y, K)), K)
    if policy != "uniform":
        log = replace(log, probabilities=(2 * torch.randn(rounds, K, generator=source)).softmax(1))

    fitted = FiniteInverse(f, phi)
    fit = fitted.fit(log)

    least, losses = brute_force(f, phi, log)
    assert fit.loss * rounds == pytest.approx(least, abs=1e-9)
    # Where no other candidate comes near, it is that very candidate.
    if sum(loss < least + 1e-9 for loss in losses) == 1:
        number = losses.index(least)
        chosen = fitted.tensors()
        assert torch.equal(chosen["f"], f[number // rivals])
        assert torch.equal(chosen["phi"], phi[number % rivals])


def test_ties_go_to_the_first_candidate():
    f = torch.tensor([[[0.2, 0.6]], [[0.6, 0.2]]])
    phi = torch.tensor([[[0.0, 1.0]], [[1.0, 0.0]]])
    both = FiniteInverse(f, phi)
    both.fit(log_of(torch.zeros(2, dtype=torch.long), torch.tensor([1, 1]), torch.tensor([0, 1]), K=2))
    assert torch.equal(both.tensors()["f"], f[0].double())


@pytest.mark.parametrize("seed", range(4))
def test_with_many_rounds_it_is_the_true_posterior(seed):
    source = torch.Generator().manual_seed(seed)
    instance = random_instance(source, contexts=3, actions=4, feedbacks=3, theta=0.7, alpha=1.0)
    candidates = function_classes(instance, source)
    log = worlds.uniform_log(FiniteEnvironment(instance, seed), 20_000)
    fitted = FiniteInverse(candidates.f, candidates.phi)

    assert fitted.fit(log).better_than_chance
    truth = posterior(instance.f[log.contexts], instance.phi[log.contexts, log.feedback])
    torch.testing.assert_close(fitted.posterior(log.contexts, log.feedback), truth)


@pytest.mark.parametrize("policy", [worlds.stubborn, worlds.hardening])
@pytest.mark.parametrize("seed", range(3))
def test_the_log_of_any_policy_leads_to_the_posterior_under_uniform_draws(policy, seed):
    instance, candidates = worlds.instance(), worlds.classes()
    log = worlds.log_of(worlds.finite(seed), policy, 20_000, seed)
    fitted = FiniteInverse(candidates.f, candidates.phi)

    assert fitted.fit(log).better_than_chance
    truth = posterior(instance.f[log.contexts], instance.phi[log.contexts, log.feedback])
    torch.testing.assert_close(fitted.posterior(log.contexts, log.feedback), truth)


def test_round_by_round_or_counted_the_risks_of_uniform_rounds_are_the_same(log):
    f, phi = worlds.classes().f, worlds.classes().phi
    counts = count(log.contexts, log.feedback, log.actions, (3, 3, 4))
    torch.testing.assert_close(logged_risks(f, phi, log), risks(f, phi, counts))


def test_a_candidate_under_which_a_round_could_not_have_happened_is_not_chosen():
    never = torch.tensor([[[0.0, 0.6, 0.3]]])
    seldom = torch.tensor([[[0.1, 0.6, 0.3]]])
    fitted = FiniteInverse(torch.cat([never, seldom]), torch.ones(1, 1, 1))
    log = log_of(torch.zeros(50, dtype=torch.long), torch.zeros(50, dtype=torch.long), torch.zeros(50).long(), K=3)
    fit = fitted.fit(replace(log, probabilities=torch.tensor([[1.0, 0.0, 0.0]]).expand(50, 3)))
    assert torch.equal(fitted.tensors()["f"], seldom[0].double())
    assert fit.loss == fit.chance == 0
    assert not fit.better_than_chance


@pytest.mark.parametrize("policy", ["uniform", "stubborn"])
def test_its_fit_is_what_the_rounds_say(log, policy):
    if policy == "stubborn":
        log = worlds.log_of(worlds.finite(), worlds.stubborn, 3_000)
    fitted = model()
    fit = fitted.fit(log)
    taken, p = torch.nn.functional.one_hot(log.actions, 4), log.probabilities.double()
    joint = p * fitted.posterior(log.contexts, log.feedback)
    losses = (joint / joint.sum(1, keepdim=True) - taken).square().sum(1)
    chance = (p - taken).square().sum(1)
    assert fit.loss == pytest.approx(float(losses.mean()))
    assert fit.error == pytest.approx(float((losses - chance).std(unbiased=False)) / len(log) ** 0.5)
    assert fit.chance == pytest.approx(float(chance.mean()))
    assert (fit.rounds, fit.held_out) == (len(log), False)
    assert min(fit.worth, fit.rounds) == pytest.approx(len(log) * (1 if policy == "uniform" else 0.3))


@pytest.mark.parametrize("policy", ["uniform", "stubborn"])
def test_feedback_that_says_nothing_is_seldom_believed(log, policy):
    if policy == "stubborn":
        log = worlds.log_of(worlds.finite(), worlds.stubborn, 3_000)
    fits = [model().fit(worlds.noise(log[slice(start, start + 60)])) for start in range(0, 2_400, 60)]
    # Of 40 fits; at a rate of one in a hundred, more than 2 would come once in 130 times.
    assert sum(fit.better_than_chance for fit in fits) <= 2


def test_a_handful_of_rounds_is_never_believed(log):
    assert not any(model().fit(log[slice(start, start + 29)]).better_than_chance for start in range(100))


def test_a_second_fit_starts_afresh(log):
    twice, once = model(), model()
    twice.fit(worlds.noise(log))
    assert twice.fit(log) == once.fit(log)
    assert torch.equal(twice.tensors()["phi"], once.tensors()["phi"])


@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_indices_of_any_integer_type_mean_the_same(log, kind):
    narrow = replace(
        log, contexts=log.contexts.to(kind), feedback=log.feedback.to(kind), actions=log.actions.to(kind)
    )
    wide, same = model(), model()
    assert same.fit(narrow) == wide.fit(log)
    expected = wide.posterior(log.contexts, log.feedback)
    assert torch.equal(same.posterior(narrow.contexts, narrow.feedback), expected)


@pytest.mark.parametrize(
    ("column", "values", "argument"),
    [
        ("probabilities", torch.full((5, 5), 1 / 5), "probabilities"),
        ("probabilities", torch.full((5, 4), 0.2), "probabilities"),
        ("actions", torch.tensor([0, 1, 2, 3, 4]), "actions"),
        ("actions", torch.tensor([-1, 1, 2, 3, 3]), "actions"),
        ("contexts", torch.tensor([0, 1, 2, 3, 0]), "contexts"),
        ("contexts", torch.tensor([0, -1, 2, 1, 0]), "contexts"),
        ("contexts", torch.tensor([0.0, 1.0, 2.0, 1.0, 0.0]), "contexts"),
        ("feedback", torch.tensor([0, 1, 2, 3, 0]), "feedback"),
        ("feedback", torch.tensor([[0], [1], [2], [1], [0]]), "feedback"),
        ("feedback", torch.tensor([0, 1, 2]), "interactions"),
    ],
)
def test_rounds_it_cannot_learn_from_are_refused_and_change_nothing(log, column, values, argument):
    fitted = model()
    fitted.fit(log)
    before = fitted.posterior(log.contexts, log.feedback)
    with pytest.raises(InvalidInputError) as refusal:
        fitted.fit(replace(log[slice(5)], **{column: values}))
    assert refusal.value.argument == argument
    assert torch.equal(fitted.posterior(log.contexts, log.feedback), before)


def test_no_rounds_are_refused(log):
    with pytest.raises(InvalidInputError, match="empty"):
        model().fit(log[slice(0)])


def test_before_any_fit_there_is_no_posterior():
    with pytest.raises(NotFittedError):
        model().posterior(torch.tensor([0]), torch.tensor([0]))


@pytest.mark.parametrize(
    ("contexts", "feedback"), [([3], [0]), ([0], [3]), ([-1], [0]), ([0, 1], [0]), ([[0]], [0]), ([0.0], [0])]
)
def test_a_posterior_of_what_does_not_exist_is_refused(log, contexts, feedback):
    fitted = model()
    fitted.fit(log)
    with pytest.raises(InvalidInputError):
        fitted.posterior(torch.tensor(contexts), torch.tensor(feedback))


@pytest.mark.parametrize(
    "altered",
    [
        {"phi": None},
        {"f": torch.full((2, 4), 0.2)},
        {"phi": torch.zeros(3, 4)},
        {"f": torch.full((3, 4), 1.5)},
        {"f": torch.full((3, 4), torch.nan)},
        {"phi": torch.full((3, 3), 0.5)},
    ],
)
def test_tables_that_are_no_candidate_are_not_restored(log, altered):
    fitted = model()
    fitted.fit(log)
    tensors = {name: table for name, table in (fitted.tensors() | altered).items() if table is not None}
    with pytest.raises(CorruptFileError):
        model().restore(tensors)


@pytest.mark.parametrize(
    ("f", "phi"),
    [
        (torch.full((2, 3), 0.2), torch.zeros(1, 2, 3)),
        (torch.full((1, 2, 3), 0.2), torch.zeros(1, 3, 3)),
        (torch.full((0, 2, 3), 0.2), torch.zeros(1, 2, 3)),
        (torch.full((1, 2, 3), 1.2), torch.zeros(1, 2, 3)),
        (torch.full((1, 2, 3), torch.nan), torch.zeros(1, 2, 3)),
        (torch.zeros(1, 2, 3), torch.zeros(1, 2, 3)),
        (torch.ones(1, 2, 3), torch.zeros(1, 2, 3)),
        (torch.ones(1, 2, 3, dtype=torch.long), torch.zeros(1, 2, 3)),
        (torch.full((1, 2, 3), 0.2), torch.full((1, 2, 3), 0.5)),
        (torch.full((1, 2, 3), 0.2), torch.zeros(1, 2, 3, dtype=torch.long)),
    ],
)
def test_classes_without_a_posterior_are_refused(f, phi):
    with pytest.raises(InvalidInputError):
        FiniteInverse(f, phi)
