"""The protocol of Table 1: which cells there are, how a decoder is picked, and what is made of the rows."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from tacit.algorithms import Models
from tacit.encoders import Category, Problem
from tacit.environments.classification import Labelled
from tacit.errors import DecoderWarning
from tacit.experiments import mnist
from tacit.experiments.mnist import PAPER, PICKED, SEEDS, Mnist, best
from tacit.experiments.results import Results, key
from tacit.experiments.spec import Measured, Origin, Place, Row, Settings
from tacit.interactions import Interactions
from tacit.inverse import InverseModel
from tacit.seeding import generator

STORED = Path(__file__).parents[3] / "results"


def run(decoded: float | None = 0.5, test: float = 0.9, seconds: float = 1.0) -> Measured:
    curve: Measured = {"rounds": [500, 1000], "hidden": [0.1, test], "decoded": [None, decoded]}
    return {
        "decoded": decoded, "hidden": test, "progressive": test / 2, "test": test, "seconds": seconds, "curve": curve,
    }  # fmt: skip


def row(settings: Settings, *runs: Measured, device: str = "cpu") -> Row:
    return Row(settings, {"runs": list(runs)}, 1.0, Origin("revision", {}, "a machine", device))


def table_rows(device: str = "cpu") -> list[Row]:
    """Every cell of the table; the test accuracy rises from .8 by .01 a seed."""
    cells = [settings for settings in Mnist().cells(quick=False) if "decoder" in settings]
    tests = [0.8 + SEEDS.index(int(str(settings["seed"]))) / 100 for settings in cells]
    return [row(settings, run(test=test), device=device) for settings, test in zip(cells, tests, strict=True)]


def grid_row(algorithm: str, decoded: dict[tuple[str, float], float | None]) -> Row:
    settings: Settings = {"algorithm": algorithm, "pairs": [list(pair) for pair in decoded], "seed": 100}
    return row(settings, *(run(value) for value in decoded.values()))


def test_the_protocol_is_the_papers():
    cells = Mnist().cells(quick=False)
    table = [settings for settings in cells if "decoder" in settings]
    assert {(settings["algorithm"], settings["decoder"]) for settings in table} == set(PAPER) == set(PICKED)
    assert len(table) == 4 * 4
    assert {(settings["rounds"], settings["explore"]) for settings in cells} == {(60_000, 5_000)}
    grids = [settings for settings in cells if "decoder" not in settings]
    assert [len(settings["pairs"]) for settings in grids] == [14, 14, 12, 12]


def test_the_grid_is_played_on_a_seed_that_the_table_does_not_use():
    cells = Mnist().cells(quick=False)
    seeds = {"decoder" in settings: set() for settings in cells}
    for settings in cells:
        seeds["decoder" in settings].add(settings["seed"])
    assert seeds[True] == set(SEEDS)
    assert not seeds[True] & seeds[False]


def test_the_table_is_of_four_seeds_that_the_recipe_was_not_made_on():
    assert len(SEEDS) == 4
    assert min(SEEDS) > 2


def test_the_step_decoder_is_searched_over_every_theta_over_alpha_of_the_grid():
    cells = [settings for settings in Mnist().cells(quick=False) if "decoder" not in settings]
    for algorithm in ("off_policy", "on_policy"):
        mine = [settings for settings in cells if settings["algorithm"] == algorithm]
        pairs = {tuple(pair) for settings in mine for pair in settings["pairs"] if "step" in settings or not pair[1]}
        assert len(pairs) == 14


def test_lipschitz_decoders_have_a_width():
    assert all(sigma > 0 for (_, decoder), (_, sigma) in PICKED.items() if decoder == "lipschitz")


def test_the_decoder_with_the_most_decoded_reward_is_picked_step_and_ramp_apart():
    rows = [
        grid_row("on_policy", {("1/3", 0.0): 0.5, ("1/2", 0.0): 0.4, ("1/3", 0.1): 0.2, ("1/2", 0.1): 0.3}),
        grid_row("off_policy", {("1/3", 0.0): 0.1, ("1/2", 0.0): 0.9, ("1/3", 0.1): None, ("1/2", 0.1): 0.01}),
    ]
    assert best(rows) == {
        ("on_policy", "step"): ("1/3", 0.0),
        ("on_policy", "lipschitz"): ("1/2", 0.1),
        ("off_policy", "step"): ("1/2", 0.0),
        ("off_policy", "lipschitz"): ("1/2", 0.1),
    }


def test_the_decoders_of_the_table_are_those_that_the_stored_grid_picks():
    results, experiment = Results(STORED), Mnist()
    grid = [found for found in results.rows(experiment) if "decoder" not in found.settings]
    assert len(grid) == 4
    assert best(grid) == PICKED


def test_figures_are_means_over_seeds_under_their_published_names():
    figures = Mnist().figures(table_rows())
    for algorithm, decoder in PICKED:
        test = figures[f"paper.{algorithm}.{decoder}.test"]
        assert (test.value, test.seeds, test.unit) == (pytest.approx(0.815), 4, "accuracy")
        assert figures[f"paper.{algorithm}.{decoder}.progressive"].value == pytest.approx(0.815 / 2)


@pytest.mark.parametrize(("device", "present", "absent"), [("cpu", "cpu", "gpu"), ("cuda", "gpu", "cpu")])
def test_seconds_are_published_for_the_kind_of_device_they_were_measured_on(device, present, absent):
    figures = Mnist().figures(table_rows(device))
    assert figures[f"paper.seconds_per_seed_{present}"].seeds == 8
    assert f"paper.seconds_per_seed_{absent}" not in figures


def test_the_table_stands_beside_the_papers_numbers():
    (table,) = Mnist().tables(table_rows())
    assert [line[0] for line in table.lines] == ["Off-policy", "Off-policy", "On-policy", "On-policy"]
    assert all(len(line) == len(table.header) for line in table.lines)
    assert "0.740 (0.022)" in table.lines[-1]
    assert "81.5 (1.3)" in table.lines[-1]


def test_the_grids_table_marks_what_was_picked():
    rows = [grid_row("on_policy", {("1/3", 0.0): 0.5, ("1/2", 0.0): 0.4})]
    _, grid = Mnist().tables([*table_rows(), *rows])
    assert [line[4] for line in grid.lines] == ["0.500 (picked)", "0.400"]


def test_the_plot_begins_where_reward_is_decoded():
    (plot,) = Mnist().plots(table_rows())
    hidden, decoded = plot.curves
    assert list(hidden.x) == [500, 1000]
    assert list(decoded.x) == [1000]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Place:
    """Noise in the place of MNIST: what is tested is the protocol, not what is learned."""
    source = generator(0, "noise")
    images = torch.randint(256, (60, 28, 28), dtype=torch.uint8, generator=source)
    examples = Labelled(images, torch.arange(60) % 10, 10)
    monkeypatch.setattr("tacit.environments.mnist.load", lambda data: (examples, examples))
    return Place()


def test_a_cell_plays_all_its_rounds_for_every_pair(small):
    settings: Settings = {
        "algorithm": "on_policy", "decoder": "step", "pairs": [["1/3", 0.0], ["1/2", 0.2]], "seed": 0, "rounds": 50,
        "explore": 40,
    }  # fmt: skip
    experiment, heard = Mnist(), []
    with pytest.warns(DecoderWarning):
        measured = experiment.run_cell(settings, small, heard.append)
    assert sum(heard) == experiment.rounds(settings) == 100
    runs = measured["runs"]
    assert [played["curve"]["rounds"] for played in runs] == [[50], [50]]
    # Noise decodes nothing, and says so.
    assert [played["decoded"] for played in runs] == [None, None]
    assert [played["test"] for played in runs] == [0.1, 0.1]


def test_learners_of_a_cell_share_one_inverse_model_fitted_once():
    inner = Mock(spec=InverseModel)
    models = mnist.SharedInverse(Mock(spec=Models, **{"inverse.return_value": inner}))
    problem, source = Problem(2, Category(2), Category(2)), generator(0, "training")
    first, second = models.inverse(problem, source), models.inverse(problem, source)
    rounds = Mock(spec=Interactions)
    assert first.fit(rounds) is second.fit(rounds) is inner.fit.return_value
    inner.fit.assert_called_once_with(rounds, None)


def test_quick_cells_are_none_of_the_published_ones():
    quick, published = ({key("mnist", settings) for settings in Mnist().cells(short)} for short in (True, False))
    assert not quick & published
