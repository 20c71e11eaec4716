"""One seed makes named generators that do not depend on each other, or on anything else."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tacit.errors import InvalidInputError
from tacit.seeding import generator, initialisation


def numbers(source: torch.Generator) -> list[float]:
    return torch.rand(4, generator=source).tolist()


def test_the_same_seed_and_name_give_the_same_numbers():
    assert numbers(generator(3, "draws")) == numbers(generator(3, "draws"))


def test_another_seed_or_another_name_gives_other_numbers():
    pairs = [(3, "draws"), (4, "draws"), (3, "order"), (31, ""), (3, "1")]
    assert len({tuple(numbers(generator(*pair))) for pair in pairs}) == len(pairs)


def test_the_numbers_of_a_seed_never_change():
    # Published figures are quoted with their seeds.
    assert numbers(generator(0, "draws")) == pytest.approx([0.9283991, 0.8062434, 0.9214510, 0.4690654], abs=1e-6)


@pytest.mark.parametrize("seed", [-1, 1.0, "1", None, True])
def test_a_seed_that_is_no_whole_number_is_refused(seed):
    with pytest.raises(InvalidInputError, match="seed: expected an integer >= 0"):
        generator(seed, "draws")


def test_layers_are_initialised_from_the_generator_alone():
    weights = []
    for _ in range(2):
        with initialisation(generator(0, "layers")):
            weights.append(nn.Linear(3, 3).weight)
    assert torch.equal(*weights)


def test_two_networks_from_one_generator_differ(source):
    weights = []
    for _ in range(2):
        with initialisation(source):
            weights.append(nn.Linear(3, 3).weight)
    assert not torch.equal(*weights)


def test_initialisation_gives_the_global_generator_back_even_after_an_error(source):
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="negative dimension"), initialisation(source):
        nn.Sequential(nn.Linear(3, 3), nn.Linear(-1, 3))
    assert torch.equal(before, torch.get_rng_state())
