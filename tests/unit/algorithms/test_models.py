"""Where models come from: finite classes that speak of the problem at hand, or networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tacit
from tacit.algorithms.models import best_device
from tacit.encoders import Problem
from tacit.errors import InvalidInputError
from tacit.inverse import FiniteInverse, FiniteReward, NetworkInverse, NetworkReward
from tacit.oracles import FinitePolicies, NetworkOracle, NetworkPolicies, VovkOracle
from tacit.seeding import generator
from tests import worlds


def test_finite_classes_know_the_problem_that_they_speak_of():
    classes = tacit.FiniteClasses(torch.full((5, 2, 3), 0.2), torch.zeros(4, 2, 6))
    assert classes.problem == Problem(3, tacit.Category(2), tacit.Category(6))
    assert classes.device == torch.device("cpu")


@pytest.mark.parametrize(
    ("f", "phi"),
    [
        (torch.full((5, 3), 0.2), torch.zeros(4, 2, 6)),
        (torch.full((5, 2, 3), 0.2), torch.zeros(2, 6)),
        (torch.full((5, 2, 3), 0.2), torch.zeros(4, 3, 6)),
    ],
)
def test_classes_over_different_contexts_are_refused(f, phi):
    with pytest.raises(InvalidInputError, match="FiniteClasses"):
        tacit.FiniteClasses(f, phi)


@pytest.mark.parametrize(
    "problem",
    [
        Problem(3, tacit.Category(3), tacit.Category(3)),
        Problem(4, tacit.Category(4), tacit.Category(3)),
        Problem(4, tacit.Category(3), tacit.Table(3)),
    ],
)
@pytest.mark.parametrize("kind", [tacit.OnPolicy, tacit.OffPolicy, tacit.TwoView])
def test_classes_of_another_problem_are_refused(kind, problem):
    with pytest.raises(InvalidInputError, match="models: the finite classes describe"):
        kind(problem.actions, problem.context, problem.feedback, explore=10, models=worlds.classes())


@pytest.mark.parametrize(
    ("models", "kinds"),
    [
        (worlds.classes(), (FiniteInverse, FiniteReward, VovkOracle, FinitePolicies)),
        (worlds.networks(), (NetworkInverse, NetworkReward, NetworkOracle, NetworkPolicies)),
    ],
)
def test_each_makes_models_of_its_kind(models, kinds):
    problem, source = worlds.finite().problem, generator(0, "test")
    makers = models.inverse, models.reward, models.oracle, models.policies
    assert tuple(type(make(problem, source)) for make in makers) == kinds


def test_the_papers_networks_learn_from_each_round_once_and_with_cocob():
    paper = tacit.Networks.paper(on="cpu")
    assert paper.inverse_training.optimiser == paper.oracle_training.optimiser == "cocob"
    assert paper.inverse_training.loss == paper.oracle_training.loss == "squared"
    oracle, inverse = paper.oracle_training, paper.inverse_training
    assert (oracle.replay, oracle.warm_up, oracle.average) == (0, 0, 0)
    # Nothing of what the paper does not have.
    assert (inverse.contrast, inverse.contrast_steps, inverse.average, inverse.dropout) == (0, 0, 0, 0)
    assert inverse.interval == 1
    assert not paper.inverse_training.augment
    assert not paper.oracle_training.augment


def test_networks_are_used_where_nothing_else_is_said(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    learner = tacit.OnPolicy(3, tacit.Category(2), tacit.Category(2), explore=10)
    assert learner.models == tacit.Networks(on="cpu")
    assert learner.decoder == tacit.Decoder.widest(alpha=1, theta=1, K=3)


@pytest.mark.parametrize(("available", "device"), [(True, "cuda"), (False, "cpu")])
def test_a_gpu_is_used_if_there_is_one(monkeypatch, available, device):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    assert best_device() == tacit.Networks().on == tacit.Networks.paper().on == device


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"context": None}, "context"), ({"feedback": "image"}, "feedback"), ({"decoder": 0}, "decoder"),
        ({"models": "networks"}, "models"), ({"models": 0}, "models"), ({"schedule": 0}, "schedule"),
    ],
)  # fmt: skip
def test_a_learner_refuses_at_once_what_would_fail_after_exploration(settings, argument):
    table = tacit.Table(2)
    with pytest.raises(InvalidInputError, match=f"^{argument}: expected "):
        tacit.OnPolicy(**{"actions": 3, "context": table, "feedback": table, "explore": 5} | settings)


@pytest.mark.parametrize("wrong", [None, "3", 1.5, 2.0, True, float("nan"), -1])
@pytest.mark.parametrize(
    ("kind", "name"),
    [(tacit.InverseTraining, "steps"), (tacit.InverseTraining, "starts"), (tacit.OracleTraining, "batch")],
)
def test_a_training_refuses_at_once_what_is_no_count(kind, name, wrong):
    with pytest.raises(InvalidInputError, match=f"^{kind.__name__}.{name}: expected a whole number"):
        kind(**{name: wrong})


@pytest.mark.parametrize("wrong", [None, 3.5, "tpu9"])
def test_networks_refuse_at_once_what_is_no_training_and_no_device(wrong):
    for name in ("inverse_training", "oracle_training", "on"):
        with pytest.raises(InvalidInputError, match=f"^{name}: expected "):
            tacit.Networks(**{name: wrong})


def test_a_learner_of_numpy_numbers_can_be_saved(tmp_path):
    eight, half = np.int64(8), np.float32(0.5)
    learner = tacit.OnPolicy(
        eight, tacit.Table(eight), tacit.Category(eight), explore=eight, seed=eight, schedule=tacit.SquareRoot(half),
        decoder=tacit.Decoder(half, half / 2), models=tacit.Networks(tacit.InverseTraining(steps=eight)),
    )  # fmt: skip
    learner.save(tmp_path)
    assert tacit.load(tmp_path).problem == learner.problem
