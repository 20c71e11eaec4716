"""Context and feedback read together: what contrast teaches, and small changes that no step draws by itself."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import tacit
from tacit.encoders.base import WIDTH
from tacit.inverse.pair import SHARED, Moved, PairNetwork, binary_losses
from tacit.seeding import generator, initialisation

IMAGE = tacit.Image(6, 6)


def network(contrast: bool = True, outputs: int = 4) -> PairNetwork:
    with initialisation(generator(0, "pair")):
        return PairNetwork(tacit.Table(3), tacit.Category(5), outputs, contrast)


@pytest.fixture
def vectors(source) -> tuple[Tensor, Tensor]:
    x, y = torch.randn(2, 12, WIDTH, generator=source)
    return x, y


def comparing(scale: float) -> PairNetwork:
    """One that compares the first numbers of both vectors, times `scale`."""
    made = network()
    for layer in made.compared:
        torch.nn.init.zeros_(layer.bias)
        with torch.no_grad():
            layer.weight.copy_(scale * torch.eye(SHARED, WIDTH))
    return made


def test_the_contrast_of_pairs_is_the_log_loss_of_finding_the_partner_both_ways(vectors):
    made, (x, y) = network(), vectors
    on_x, on_y = (layer(part) for layer, part in zip(made.compared, (x, y), strict=True))
    scores = on_x @ on_y.T / math.sqrt(SHARED)
    both = [torch.nn.functional.cross_entropy(s, torch.arange(12)) for s in (scores, scores.T)]
    torch.testing.assert_close(made.contrast_loss(x, y), (both[0] + both[1]) / 2)


@pytest.mark.parametrize("n", [2, 7, 64])
def test_scores_that_are_all_alike_cost_the_log_of_their_number(n, source):
    x, y = torch.randn(2, n, WIDTH, generator=source)
    assert float(comparing(0.0).contrast_loss(x, y).detach()) == pytest.approx(math.log(n), abs=1e-5)


def test_the_contrast_of_pairs_is_least_where_they_belong_together():
    made, own = comparing(5.0), torch.eye(8, WIDTH)
    losses = {shift: float(made.contrast_loss(own, own.roll(shift, 0)).detach()) for shift in range(8)}
    assert losses[0] == min(losses.values())
    assert losses[0] < 0.2 < math.log(8) < min(losses[shift] for shift in range(1, 8))


def test_the_contrast_of_pairs_teaches_the_encoders_and_not_the_answer(source):
    made = network()
    x, y = made.context(torch.rand(12, 3, generator=source)), made.feedback(torch.arange(12) % 5)
    made.contrast_loss(x, y).backward()
    taught = {name.split(".")[0] for name, value in made.named_parameters() if value.grad is not None}
    assert taught == {"context", "feedback", "compared"}


def test_without_contrast_there_is_nothing_more_to_learn_or_to_save():
    assert not [name for name in network(contrast=False).state_dict() if name.startswith("compared")]
    assert len([name for name in network().state_dict() if name.startswith("compared")]) == 4


def test_a_mask_multiplies_the_units_between(vectors):
    made, (x, y) = network(), vectors
    assert torch.equal(made.joined(x, y, torch.ones(12, WIDTH)), made.joined(x, y))
    silent = made.joined(x, y, torch.zeros(12, WIDTH))
    torch.testing.assert_close(silent, made.head[2].bias.expand(12, 4))


def test_reading_both_is_reading_each_and_joining_them(source):
    made = network()
    contexts, feedback = torch.rand(12, 3, generator=source), torch.arange(12) % 5
    joined = made.joined(made.context(contexts), made.feedback(feedback))
    assert torch.equal(made(contexts, feedback), joined)


# -- small changes -----------------------------------------------------------------------------------------------------


def test_the_numbers_for_small_changes_come_from_the_generator_passed_in():
    moved, cpu = Moved(IMAGE, tacit.Table(3), augment=True, dropout=0.3), torch.device("cpu")
    one, other = generator(0, "a"), generator(0, "a")
    first, again, later = (moved.noise(20, source, cpu) for source in (one, other, other))
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first[2], later[2])
    assert [noise.shape for noise in first] == [(20, IMAGE.noise_width), (0, 0), (20, WIDTH)]


def test_units_are_left_out_by_the_numbers_given_and_the_others_make_up_for_it():
    moved = Moved(IMAGE, IMAGE, augment=False, dropout=0.25)
    mask = moved.mask(torch.tensor([[0.0, 0.2499, 0.25, 0.9]]))
    torch.testing.assert_close(mask, torch.tensor([[0.0, 0.0, 4 / 3, 4 / 3]]))


def test_on_average_a_unit_counts_as_it_would_without_dropout(source):
    mask = Moved(IMAGE, IMAGE, augment=False, dropout=0.3).mask(torch.rand(4_000, WIDTH, generator=source))
    # 256,000 units: four standard errors are 0.0052.
    assert float(mask.mean()) == pytest.approx(1, abs=0.0052)


def test_pairs_are_moved_as_their_kind_says_and_alone_where_there_is_noise(source):
    moved = Moved(IMAGE, IMAGE, augment=True, dropout=0.0)
    x, y = torch.rand(2, 5, 6, 6, generator=source)
    x_noise, y_noise, dropped = moved.noise(5, source, torch.device("cpu"))
    both = moved.pairs(x, y, x_noise, y_noise)
    assert torch.equal(both[0], IMAGE.augment(x, x_noise))
    assert torch.equal(both[1], IMAGE.augment(y, y_noise))
    assert moved.mask(dropped) is None


def test_where_nothing_is_to_be_changed_nothing_is_drawn(source):
    moved, before = Moved(IMAGE, IMAGE, augment=False, dropout=0.0), source.get_state()
    noise = moved.noise(5, source, torch.device("cpu"))
    assert torch.equal(source.get_state(), before)
    assert [part.numel() for part in noise] == [0, 0, 0]
    x, y = torch.zeros(5, 6, 6), torch.ones(5, 6, 6)
    assert all(one is other for one, other in zip(moved.pairs(x, y, *noise[:2]), (x, y), strict=True))


@pytest.mark.parametrize("label", [0.03, 0.5, 0.97])
def test_the_loss_of_a_yes_or_no_is_least_at_its_label(label):
    logits = torch.linspace(-6, 6, 1_201)
    losses = binary_losses(logits, torch.full_like(logits, label))
    assert float(logits[losses.argmin()].sigmoid()) == pytest.approx(label, abs=0.003)  # half a step of the logits
