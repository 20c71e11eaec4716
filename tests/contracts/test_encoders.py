"""What holds for every kind of value and its encoder."""

from __future__ import annotations

import pytest
import torch

from tacit.encoders import Space
from tacit.encoders.base import WIDTH
from tacit.errors import InvalidInputError
from tacit.seeding import initialisation
from tests.contracts.components import SPACES, source, values


@pytest.fixture(params=SPACES)
def space(request) -> Space:
    return SPACES[request.param]


def encoder(space: Space, seed: int = 0):
    with initialisation(source(seed)):
        made = space.encoder()
    made.prepare(values(space, 50))
    return made


def test_every_value_becomes_a_vector_of_the_same_width(space):
    encoded = encoder(space)(values(space, 20))
    assert encoded.shape == (20, WIDTH)
    assert encoded.isfinite().all()


def test_encoding_leaves_the_values_as_they_were(space):
    given = values(space, 20)
    encoder(space)(given)
    assert torch.equal(given, values(space, 20))


def test_a_batch_is_encoded_as_its_values_one_by_one(space):
    made, given = encoder(space), values(space, 20)
    one_by_one = torch.cat([made(given[i : i + 1]) for i in range(20)])
    torch.testing.assert_close(one_by_one, made(given), atol=1e-5, rtol=1e-4)


def test_the_same_seed_gives_the_same_encoder_and_another_seed_another(space):
    first, again, other = (encoder(space, seed)(values(space, 20)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_restored_it_encodes_as_the_one_that_was_saved(space):
    saved, restored = encoder(space, 0), encoder(space, 1)
    restored.load_state_dict(saved.state_dict())
    assert torch.equal(restored(values(space, 20)), saved(values(space, 20)))


def test_what_is_moved_a_little_stays_of_its_kind_and_the_original_as_it_was(space):
    given = values(space, 20)
    moved = space.augment(given, torch.rand(20, space.noise_width, generator=source(0)))
    space.check(moved, "moved")
    space.check_range(moved, "moved")
    assert torch.equal(given, values(space, 20))
    assert torch.equal(moved, given) is (space.noise_width == 0)


def test_its_own_values_pass_and_those_of_another_shape_do_not(space):
    space.check(values(space, 3), "values")
    space.check_range(values(space, 3), "values")
    for wrong in (values(space, 3)[..., None], values(space, 3)[None], torch.zeros(())):
        with pytest.raises(InvalidInputError, match="values: expected shape"):
            space.check(wrong, "values")
