"""What every kind of value has in common: its shape, its checks, its encoder, and changes that keep its meaning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from tacit.encoders import Category, Image, Problem, Space, Table
from tacit.encoders.base import WIDTH
from tacit.errors import InvalidInputError
from tacit.interactions import check_finite
from tacit.seeding import generator, initialisation


@dataclass(frozen=True)
class Case:
    """A space, five values of it, and what it refuses."""

    space: Space
    values: Tensor


CASES = {
    "category": Case(Category(4), torch.tensor([0, 1, 2, 3, 0])),
    "category of bytes": Case(Category(4), torch.tensor([0, 1, 2, 3, 0], dtype=torch.uint8)),
    "truth values": Case(Category(2), torch.tensor([True, False, True, True, False])),
    "table": Case(Table(3), torch.arange(15.0).reshape(5, 3)),
    "table of integers": Case(Table(3), torch.arange(15).reshape(5, 3)),
    "image": Case(Image(8, 12), torch.arange(5 * 96.0).reshape(5, 8, 12) / 480),
    "image of bytes": Case(Image(5, 4), torch.arange(100, dtype=torch.uint8).reshape(5, 5, 4)),
    "image in colour": Case(Image(9, 8, 3), torch.arange(1080.0).reshape(5, 3, 9, 8) / 1080),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


def encoder(space: Space) -> torch.nn.Module:
    with initialisation(generator(0, "encoder")):
        return space.encoder()


def test_good_values_pass_and_have_the_shape_that_is_promised(case):
    case.space.check(case.values, "contexts")
    case.space.check_range(case.values, "contexts")
    assert tuple(case.values.shape[1:]) == case.space.shape


def test_values_become_vectors(case):
    network = encoder(case.space)
    network.prepare(case.values)
    vectors = network(case.values)
    assert vectors.shape == (5, WIDTH)
    assert vectors.dtype == torch.float32
    assert bool(vectors.isfinite().all())
    assert not torch.equal(vectors[1], vectors[2])
    assert torch.equal(vectors[1:2], network(case.values)[1:2])


def test_a_value_is_encoded_alike_whatever_comes_with_it(case):
    network = encoder(case.space)
    network.prepare(case.values)
    assert torch.allclose(network(case.values)[2:3], network(case.values[2:3]), atol=1e-5)


def test_no_values_are_encoded_as_no_vectors(case):
    assert encoder(case.space)(case.values[:0]).shape == (0, WIDTH)


def test_encoders_of_one_space_differ_until_they_are_given_the_same_weights(case, source):
    with initialisation(source):
        first, second = case.space.encoder(), case.space.encoder()
    assert not torch.equal(first(case.values), second(case.values))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(case.values), second(case.values))


def test_all_weights_learn(case):
    network = encoder(case.space)
    network.prepare(case.values)
    network(case.values).sum().backward()
    assert all(weight.grad is not None and bool(weight.grad.any()) for weight in network.parameters())


def test_changes_keep_number_shape_and_range_and_the_values_given(case, source):
    before = case.values.clone()
    noise = torch.rand(5, case.space.noise_width, generator=source)
    moved = case.space.augment(case.values, noise)
    assert moved.shape == case.values.shape
    assert torch.equal(case.values, before)
    case.space.check(moved, "contexts")
    case.space.check_range(moved, "contexts")
    # Bytes become numbers from 0 to 1.
    largest = 255 if before.dtype == torch.uint8 and moved.is_floating_point() else 1
    assert float(moved.min()) >= min(0.0, float(before.min()))
    assert float(moved.max()) <= float(before.max()) / largest + 1e-6


@pytest.mark.parametrize("shape", [(), (5, 2), (5, 8, 8, 8, 8)], ids=str)
@pytest.mark.parametrize("space", [Category(4), Table(3), Image(8, 8), Image(8, 8, 3)], ids=str)
def test_values_of_another_shape_are_refused(space, shape):
    expected = ", ".join(["rounds", *map(str, space.shape)])
    with pytest.raises(InvalidInputError, match=rf"feedback: expected shape \({expected}\), got \({shape and '5'}"):
        space.check(torch.zeros(shape, dtype=torch.uint8), "feedback")


@pytest.mark.parametrize(
    ("space", "dtype"),
    [
        (Category(4), torch.float32),
        (Category(4), torch.complex64),
        (Table(3), torch.complex64),
        (Image(8, 8), torch.int64),
        (Image(8, 8), torch.bool),
    ],
    ids=str,
)
def test_values_of_another_type_are_refused(space, dtype):
    with pytest.raises(InvalidInputError, match=f"contexts: .*, got {dtype}"):
        space.check(torch.zeros(5, *space.shape, dtype=dtype), "contexts")


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("space", [Table(3), Image(8, 8), Image(8, 8, 3)], ids=str)
def test_numbers_that_are_not_finite_are_refused_with_their_row(space, wrong):
    values = torch.zeros(5, *space.shape)
    values.view(5, -1)[3, 1] = wrong
    with pytest.raises(InvalidInputError, match=r"contexts: not a finite number.* in row 3; 1 of 5"):
        space.check_range(values, "contexts")


@pytest.mark.parametrize(("wrong", "found"), [(4, "4"), (-1, "-1"), (1_000, "1000")])
def test_a_category_out_of_range_is_refused_with_its_row(wrong, found):
    with pytest.raises(InvalidInputError, match=rf"feedback: outside 0\.\.3 \(found {found}\) in row 2; 1 of 4"):
        Category(4).check_range(torch.tensor([0, 1, wrong, 3]), "feedback")


@pytest.mark.parametrize("size", [0, -1, 2.0, "3", None, True])
@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (Category, "count"),
        (Table, "columns"),
        (lambda size: Image(size, 8), "height"),
        (lambda size: Image(8, size), "width"),
        (lambda size: Image(8, 8, size), "channels"),
    ],
    ids=["category", "table", "height", "width", "channels"],
)
def test_a_space_of_no_size_is_refused(make, argument, size):
    with pytest.raises(InvalidInputError, match=f"{argument}: expected a whole number, at least 1, got"):
        make(size)


@pytest.mark.parametrize(("height", "width"), [(3, 28), (28, 3)])
def test_an_image_too_small_to_be_pooled_twice_is_refused(height, width):
    with pytest.raises(InvalidInputError, match=f"Image: needs at least 4 x 4 pixels, got {height} x {width}"):
        Image(height, width)


@pytest.mark.parametrize("actions", [1, 0, 2.0])
def test_a_problem_without_a_choice_is_refused(actions):
    with pytest.raises(InvalidInputError, match="actions: expected at least two"):
        Problem(actions, Table(1), Table(1))


# -- tables ------------------------------------------------------------------------------------------------------------


def standardised(values: Tensor, known: Tensor | None = None) -> Tensor:
    """What a table's encoder makes of values before its layers, once it has seen the known ones, or else these."""
    network = encoder(Table(values.shape[1]))
    network.prepare(values if known is None else known)
    seen = []
    network.layers.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    network(values)
    return seen[0]


def test_every_column_is_brought_to_mean_0_and_spread_1(source):
    columns = torch.randn(500, 3, generator=source, dtype=torch.float64)
    numbers = standardised(columns * torch.tensor([1e-6, 1.0, 1e9]) + torch.tensor([5.0, 0.0, -1e12]))
    assert numbers.dtype == torch.float32
    assert torch.allclose(numbers.mean(0), torch.zeros(3), atol=1e-3)
    assert torch.allclose(numbers.std(0, unbiased=False), torch.ones(3), atol=1e-3)


def test_small_differences_between_large_numbers_are_seen():
    # Seconds since 1970: single precision knows them only to two minutes.
    seconds = torch.tensor([[1_700_000_000.0], [1_700_000_001.0], [1_700_000_002.0]], dtype=torch.float64)
    assert standardised(seconds)[:, 0].tolist() == pytest.approx([-1.2247, 0.0, 1.2247], abs=1e-4)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e12, -7.3])
def test_a_constant_column_becomes_zero_and_other_values_stay_small(constant):
    values = torch.full((1_000, 1), constant, dtype=torch.float64)
    assert standardised(values).abs().max() < 1e-3
    assert standardised(values[:1] + 2, known=values).item() == pytest.approx(2, abs=1e-3)


def test_differences_too_small_to_square_do_not_divide_by_zero():
    values = torch.tensor([[0.0], [1e-200]], dtype=torch.float64)
    assert bool(standardised(values).isfinite().all())


def test_an_unprepared_table_takes_numbers_as_they_are():
    network = encoder(Table(2))
    assert torch.equal(network.centre, torch.zeros(2, dtype=torch.float64))
    assert torch.equal(network.spread, torch.ones(2, dtype=torch.float64))


def test_the_scale_of_a_table_is_saved_with_its_weights():
    network, again = encoder(Table(2)), encoder(Table(2))
    values = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    network.prepare(values)
    again.load_state_dict(network.state_dict())
    assert torch.equal(network(values), again(values))


# -- images ------------------------------------------------------------------------------------------------------------

UNMOVED = 0.5


def noise(count: int, *, turn: float = UNMOVED, scale: float = UNMOVED, right: float = UNMOVED, down: float = UNMOVED):
    return torch.tensor([[turn, scale, right, down]]).expand(count, 4)


@pytest.mark.parametrize("space", [Image(8, 12), Image(7, 7), Image(9, 8, 3)], ids=str)
def test_an_image_stays_as_it_is_in_the_middle_of_the_noise(space, source):
    values = torch.rand(4, *space.shape, generator=source)
    assert torch.allclose(space.augment(values, noise(4)), values, atol=1e-5)


def test_bytes_and_numbers_from_0_to_1_are_the_same_image(source):
    space = Image(8, 8)
    pixels = torch.randint(256, (3, 8, 8), generator=source, dtype=torch.uint8)
    network = encoder(space)
    assert torch.equal(network(pixels), network(pixels.float() / 255))
    changes = torch.rand(3, 4, generator=source)
    assert torch.equal(space.augment(pixels, changes), space.augment(pixels.float() / 255, changes))


def dot(height: int, width: int, row: int, column: int) -> Tensor:
    image = torch.zeros(1, height, width)
    image[0, row, column] = 1
    return image


def centre(image: Tensor) -> tuple[float, float]:
    """Where the light of an image is: row and column."""
    light = image[0] / image.sum()
    return tuple(
        float((light.sum(1 - axis) * torch.arange(image.shape[1 + axis])).sum()) for axis in (0, 1)
    )  # type: ignore[return-value]


@pytest.mark.parametrize(("height", "width"), [(28, 28), (28, 56), (56, 28)])
@pytest.mark.parametrize(("direction", "axis"), [("down", 0), ("right", 1)])
def test_an_image_is_shifted_by_at_most_a_fourteenth(height, width, direction, axis):
    middle = (height // 2, width // 2)
    moved = Image(height, width).augment(dot(height, width, *middle), noise(1, **{direction: 1.0}))
    shift = [found - given for found, given in zip(centre(moved), middle, strict=True)]
    assert abs(shift[axis]) == pytest.approx((height, width)[axis] / 14, abs=0.01)
    assert shift[1 - axis] == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize(("height", "width"), [(40, 20), (20, 40)])
def test_an_oblong_image_is_turned_like_the_same_image_on_a_square(height, width, source):
    top, left = (40 - height) // 2, (40 - width) // 2
    inside = slice(top, top + height), slice(left, left + width)
    image = torch.rand(2, height, width, generator=source)
    square = torch.zeros(2, 40, 40)
    square[:, *inside] = image
    changes = noise(2, turn=0.9, scale=0.2)
    turned = Image(height, width).augment(image, changes)
    assert torch.allclose(turned, Image(40, 40).augment(square, changes)[:, *inside], atol=1e-4)


def test_an_image_is_turned_by_at_most_a_quarter_radian_and_scaled_by_at_most_a_tenth():
    # Twelve pixels to the right of the middle; the grid of pixels rounds to about a tenth of one.
    given = dot(41, 41, 20, 32)
    row, column = centre(Image(41, 41).augment(given, noise(1, turn=1.0)))
    assert np.hypot(row - 20, column - 20) == pytest.approx(12, abs=0.1)
    assert abs(np.arctan2(row - 20, column - 20)) == pytest.approx(0.25, abs=0.01)
    _, column = centre(Image(41, 41).augment(given, noise(1, scale=1.0)))
    assert column - 20 == pytest.approx(12 / 1.1, abs=0.1)


def test_an_image_far_too_bright_is_still_a_number(source):
    values = torch.rand(3, 8, 8, generator=source) * 1e6
    check_finite(encoder(Image(8, 8))(values), "vectors")


@pytest.mark.parametrize(("space", "most"), [(Table(2), 1e30), (Image(8, 8), 1e6)])
def test_finite_numbers_that_would_overflow_are_refused_with_their_row(space, most):
    values = torch.ones(3, *space.shape, dtype=torch.float64)
    values[1] = -most
    space.check_range(values, "contexts")
    values[1] *= 1.01
    with pytest.raises(InvalidInputError, match=r"^contexts: a number beyond 1e\+\d+ in row 1; 1 of 3 rows"):
        space.check_range(values, "contexts")


def test_the_farthest_number_of_a_table_leaves_gradients_finite():
    network = encoder(Table(1))
    network.prepare(torch.tensor([[1.0], [1.0 + 1e-6]], dtype=torch.float64))
    network(torch.tensor([[1e30], [-1e30]], dtype=torch.float64)).square().sum().backward()
    assert all(bool(weight.grad.isfinite().all()) for weight in network.parameters())
    assert max(float(weight.grad.abs().max()) for weight in network.parameters()) < 1e6
