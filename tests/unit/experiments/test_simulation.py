"""The vectorised simulation is the algorithms: the same numbers as the library's learners, and honest errors."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import tacit
from tacit.algorithms import Horizon
from tacit.environments.finite import (
    FiniteEnvironment,
    close_race,
    draw_rounds,
    function_classes,
    random_instance,
    step_trap,
)  # fmt: skip
from tacit.experiments import simulation
from tacit.experiments.simulation import (
    Block,
    Deal,
    Task,
    act,
    dealer,
    exploit,
    learn,
    off_policy,
    on_policy,
    posteriors,
    toss,
)  # fmt: skip
from tacit.exploration import Constant
from tacit.seeding import generator

T = 800


def nobody(rounds: int) -> None:
    """Listens to no progress."""


def random_world():
    source = generator(4, "a world to simulate")
    instance = random_instance(source, 3, 5, 4, theta=0.6, alpha=1.0)
    return instance, function_classes(instance, source)


WORLDS = {"race": lambda: close_race(8, 0.3), "trap": step_trap, "random": random_world}


def make(world: str, decoder: str = "lipschitz", rounds: int = T, scale: float = 1 / 8) -> Task:
    instance, classes = WORLDS[world]()
    chosen = instance.decoder if decoder == "lipschitz" else instance.decoder.step()
    return Task(instance, classes, chosen, Horizon(rounds, classes.size, len(classes.f), scale))


def learner(task: Task, kind, explore: int, seed: int, **settings) -> tacit.Learner:
    models = tacit.FiniteClasses(task.classes.f, task.classes.phi)
    problem = models.problem
    return kind(
        problem.actions, problem.context, problem.feedback, explore=explore, decoder=task.decoder, models=models,
        seed=seed, **settings,
    )  # fmt: skip


def played(acting: tacit.Learner, task: Task, rounds: int, seed: int) -> Tensor:
    """What each round cost in expectation, played one by one."""
    lost = []
    for arrival in FiniteEnvironment(task.instance, seed).stream(rounds, batch=1):
        decision = acting.choose(arrival.contexts)
        acting.learn(decision, arrival.react(decision.actions)[0])
        lost.append((decision.probabilities * task.instance.gaps[arrival.contexts]).sum())
    return torch.stack(lost)


def same_numbers(task: Task, rounds: int, seed: int) -> Block:
    """The random numbers of `played`: the environment's, and those by which the learner draws its actions."""
    world, draws = generator(seed, "finite rounds"), generator(seed, "draws")
    contexts, reactions = zip(*(draw_rounds(task.instance, (1,), world) for _ in range(rounds)), strict=True)
    actions = torch.stack([torch.rand(1, generator=draws) for _ in range(rounds)])
    return Block(torch.stack(contexts).T, actions.double().T, torch.stack(reactions).movedim(0, 1))


def part(block: Block, start: int, end: int) -> Block:
    return Block(block.contexts[:, start:end], block.actions[:, start:end], block.reactions[:, start:end])


def dealing(block: Block, start: int) -> Deal:
    """Deals from a block, from `start` on."""
    at = start

    def deal(runs: int, rounds: int) -> Block:
        nonlocal at
        assert runs == len(block.contexts)
        at += rounds
        return part(block, at - rounds, at)

    return deal


# Seeds with which the learner trusts its decoder: the paper's algorithms do not ask, the library's do. And seeds with
# which the step decoder in the trap leaves no two actions exactly equal, which rounding would decide between.
@pytest.mark.parametrize(("world", "decoder", "seed"), [
    ("race", "lipschitz", 1), ("race", "step", 2), ("trap", "lipschitz", 0), ("trap", "lipschitz", 4),
    ("trap", "step", 4), ("random", "lipschitz", 0), ("random", "step", 1),
])  # fmt: skip
def test_acting_is_what_the_on_policy_learner_does_round_by_round(world, decoder, seed):
    task = make(world, decoder)
    N, gamma = task.horizon.on_policy_rounds(*task.size), task.horizon.gamma(*task.size)
    acting = learner(task, tacit.OnPolicy, N, seed, schedule=Constant(gamma))
    lost = played(acting, task, T, seed)
    assert not acting.exploring
    block = same_numbers(task, T, seed)
    h = posteriors(task, learn(task, part(block, 0, N)))
    regret = act(task, h, dealing(block, N), nobody)
    # The learner's gamma is a float32. One action drawn otherwise would tell the oracle something else.
    assert float(regret) == pytest.approx(float(lost[N:].sum()), rel=1e-6)
    assert lost[:N].tolist() == pytest.approx(task.instance.gaps.mean(-1)[block.contexts[0, :N]].tolist())


@pytest.mark.parametrize(("world", "decoder", "seed", "mistaken"), [
    ("race", "lipschitz", 0, False), ("race", "lipschitz", 1, True), ("trap", "lipschitz", 0, False),
    ("trap", "step", 0, True), ("random", "lipschitz", 0, False), ("random", "step", 0, False),
])  # fmt: skip
def test_exploiting_is_what_the_off_policy_learner_does(world, decoder, seed, mistaken):
    task = make(world, decoder)
    N = task.horizon.off_policy_rounds(*task.size)
    acting = learner(task, tacit.OffPolicy, N, seed)
    played(acting, task, 2 * N, seed)
    assert not acting.exploring
    every = torch.arange(task.instance.shape[0])
    lost = task.instance.contexts @ task.instance.gaps[every, acting.greedy(every)]
    block = same_numbers(task, 2 * N, seed)
    assert float(exploit(task, part(block, 0, N), part(block, N, 2 * N))) == pytest.approx(float(lost))
    assert bool(lost > 0) is mistaken


def test_runs_side_by_side_are_the_runs_one_by_one(source):
    task = make("race", rounds=600, scale=1 / 32)
    N, size = task.horizon.on_policy_rounds(*task.size), task.horizon.off_policy_rounds(*task.size)
    block = dealer(task.instance, source)(4, 600)
    h = posteriors(task, learn(task, part(block, 0, N)))
    together = act(task, h, dealing(block, N), nobody)
    halves = part(block, 0, size), part(block, size, 2 * size)
    for run in range(4):
        alone = Block(*(column[run : run + 1] for column in (block.contexts, block.actions, block.reactions)))
        assert torch.equal(posteriors(task, learn(task, part(alone, 0, N)))[0], h[run])
        assert torch.allclose(act(task, h[run : run + 1], dealing(alone, N), nobody), together[run], rtol=1e-9)
        pair = part(alone, 0, size), part(alone, size, 2 * size)
        assert torch.allclose(exploit(task, *pair)[0], exploit(task, *halves)[run])


@pytest.mark.parametrize("at_once", [1, 7, 100_000])
def test_how_much_is_drawn_at_once_changes_nothing(monkeypatch, source, at_once):
    task = make("race", rounds=400, scale=1 / 32)
    block = dealer(task.instance, source)(3, 400)
    h = posteriors(task, torch.tensor([3, 100, task.classes.size - 1]))
    before = act(task, h, dealing(block, 0), nobody)
    monkeypatch.setattr(simulation, "ROUNDS_AT_ONCE", at_once)
    assert torch.allclose(act(task, h, dealing(block, 0), nobody), before, rtol=1e-9)


def test_regret_counts_the_uniform_rounds_in_full(source):
    """With the posterior and the policy right for sure, nothing else is lost off-policy."""
    task = make("random", rounds=20_000, scale=0.3)
    outcome = off_policy(task, 20, source, nobody)
    gaps = task.instance.contexts @ task.instance.gaps.mean(-1)
    assert outcome.uniform_rounds == 2 * task.horizon.off_policy_rounds(*task.size)
    assert outcome.regret == pytest.approx(outcome.uniform_rounds * float(gaps))
    assert outcome.uniform_regret == pytest.approx(outcome.regret)
    assert outcome.error == 0
    acting = on_policy(task, 20, 2, source, nobody)
    assert acting.uniform_rounds == task.horizon.on_policy_rounds(*task.size)
    assert acting.uniform_regret == pytest.approx(acting.uniform_rounds * float(gaps))
    assert acting.regret > acting.uniform_regret


def test_seeds_that_learned_the_same_may_share_what_follows(source):
    """The mean over seeds is that of runs which share nothing, within four standard errors."""
    task = make("race", rounds=500, scale=1 / 64)
    N, deal = task.horizon.on_policy_rounds(*task.size), dealer(task.instance, source)
    h = posteriors(task, learn(task, deal(1_000, N), source))
    apart = act(task, h, deal, nobody) + N * task.uniform_regret
    error = float(apart.std()) / 1_000**0.5
    shared = on_policy(task, 1_000, 2, source, nobody)
    assert abs(shared.regret - float(apart.mean())) < 4 * (shared.error**2 + error**2) ** 0.5


@pytest.mark.parametrize("algorithm", ["off_policy", "on_policy"])
def test_the_standard_error_is_that_of_repetitions(source, algorithm):
    task = make("race", rounds=300, scale=1 / 32)
    if algorithm == "off_policy":
        outcomes = [off_policy(task, 12, source, nobody) for _ in range(200)]
    else:
        outcomes = [on_policy(task, 12, 2, source, nobody) for _ in range(200)]
    found = torch.tensor([outcome.regret for outcome in outcomes]).std()
    claimed = torch.tensor([outcome.error for outcome in outcomes]).square().mean().sqrt()
    assert float(claimed / found) == pytest.approx(1, abs=0.2)  # four standard errors of a spread over 200


@pytest.mark.parametrize("rounds", [300, 1_234])
def test_progress_adds_up_to_all_rounds(source, rounds):
    heard: list[int] = []
    task = make("race", rounds=rounds, scale=1 / 64)
    off_policy(task, 3, source, heard.append)
    assert sum(heard) == rounds
    on_policy(task, 3, 2, source, heard.append)
    assert sum(heard) == 2 * rounds


def test_a_coin_settles_ties_and_nothing_else(source):
    scores = torch.tensor([0.0, 1.0, 1.0, 1.0 - 1e-6], dtype=torch.float64).expand(4_000, -1)
    picked = toss(scores, source).argmax(-1).bincount(minlength=4)
    assert picked[[0, 3]].tolist() == [0, 0]
    assert picked[1] / 4_000 == pytest.approx(0.5, abs=0.04)  # five standard errors
    assert (toss(scores, None).argmax(-1) == 1).all()
