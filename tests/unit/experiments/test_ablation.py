"""What is left out, and only that: every part in turn, on seeds that were not looked at."""

from __future__ import annotations

import pytest

import tacit
from tacit.encoders import Problem
from tacit.experiments import results as stored
from tacit.experiments.ablation import SEEDS, VARIANTS, Ablation, made
from tacit.experiments.refined import SEEDS as SEEDS_OF_REFINED
from tacit.experiments.results import key
from tacit.experiments.spec import Measured, Origin, Place, Row, Settings

PROBLEM = Problem(10, tacit.Image(28, 28), tacit.Image(28, 28))
NETWORKS = tacit.Networks(on="cpu")


def measured(cell: Settings) -> Measured:
    """Whatever is left out costs .01 for each line further down, and every seed gains .001."""
    test = 0.9 - 0.01 * list(VARIANTS).index(str(cell["without"])) + 0.001 * SEEDS.index(int(str(cell["seed"])))
    return {"progressive": test / 2, "test": test, "seconds": 30.0, "inverse_loss": 0.8, "trusted": True}


@pytest.fixture
def rows() -> list[Row]:
    cells = Ablation().cells(quick=False)
    return [Row(cell, measured(cell), 1.0, Origin("revision", {}, "a machine")) for cell in cells]


def test_every_part_is_left_out_on_every_seed_and_on_none_that_was_looked_at():
    cells = Ablation().cells(quick=False)
    assert [(cell["without"], cell["seed"]) for cell in cells] == [(name, s) for name in VARIANTS for s in SEEDS]
    assert len(SEEDS) == 4
    assert not set(SEEDS) & {*range(3), *SEEDS_OF_REFINED}
    assert {(cell["rounds"], cell["explore"]) for cell in cells} == {(6_000, 1_500)}


def test_quick_cells_are_none_of_the_published_ones():
    quick, published = ({key("ablation", cell) for cell in Ablation().cells(short)} for short in (True, False))
    assert not quick & published
    assert len(quick) == len(VARIANTS)


# -- who plays ---------------------------------------------------------------------------------------------------------


def learner(name: str) -> tacit.Learner:
    return made(VARIANTS[name], PROBLEM, 2_000, NETWORKS, 40)


def settings(acting: tacit.Learner) -> dict[str, object]:
    models = acting.models
    assert isinstance(models, tacit.Networks)
    return {
        "kind": type(acting), "decoder": acting.decoder, "seed": acting.seed, **acting.settings(),
        **{f"inverse.{name}": value for name, value in vars(models.inverse_training).items()},
        **{f"oracle.{name}": value for name, value in vars(models.oracle_training).items()},
    }  # fmt: skip


DIFFERENCES: dict[str, dict[str, object]] = {
    "whole": {},
    "refinement": {"kind": tacit.OnPolicy},
    "contrast": {"inverse.contrast": 0, "inverse.contrast_steps": 0},
    "augmentation": {"inverse.augment": False, "oracle.augment": False},
    "averages": {"inverse.average": 0, "oracle.average": 0},
    "wide_ramp": {"decoder": tacit.Decoder.from_assumption(1, 1, 10)},
    "replay": {"oracle.replay": 0},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_each_variant_lacks_its_part_and_nothing_else(name):
    whole, without = settings(learner("whole")), settings(learner(name))
    assert whole.keys() == without.keys()
    assert {part: value for part, value in without.items() if value != whole[part]} == DIFFERENCES[name]


def test_the_whole_is_the_learner_as_it_comes():
    as_it_comes = tacit.TwoView(10, PROBLEM.context, PROBLEM.feedback, explore=2_000, models=NETWORKS, seed=40)
    assert settings(learner("whole")) == settings(as_it_comes)


# -- a cell ------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::tacit.DecoderWarning")  # hardly trained, it may well understand nothing
@pytest.mark.parametrize("name", ["whole", "refinement"])
def test_a_cell_plays_all_its_rounds(name):
    cell: Settings = {"without": name, "rounds": 600, "explore": 400, "seed": 40, "brief": True}
    heard: list[int] = []
    found = Ablation().run_cell(cell, Place(), heard.append)
    assert sum(heard) == Ablation().rounds(cell) == 600
    assert found.keys() == measured(Ablation().cells(quick=False)[0]).keys()
    assert 0 <= found["test"] <= 1
    assert 0 <= found["progressive"] <= 0.4  # two thirds of the rounds count as a tenth


# -- what is made of the rows ------------------------------------------------------------------------------------------


def test_figures_are_means_over_the_seeds_of_a_variant(rows):
    figures = stored.figures(Ablation(), rows)
    assert set(figures) == {
        f"ablation.{name}.{what}" for name in VARIANTS for what in ("progressive", "test", "seconds")
    }
    assert figures["ablation.whole.test"]["value"] == pytest.approx(0.9015)
    assert figures["ablation.refinement.test"]["value"] == pytest.approx(0.8915)
    assert figures["ablation.contrast.progressive"]["value"] == pytest.approx(0.8815 / 2)
    assert figures["ablation.whole.test"]["seeds"] == 4


def test_the_table_says_what_is_left_out_and_how_the_worst_seed_did(rows):
    (table,) = Ablation().tables(rows)
    assert [line[0] for line in table.lines] == [variant.called for variant in VARIANTS.values()]
    assert all(len(line) == len(table.header) for line in table.lines)
    assert table.lines[1][1:] == ("0.446 (0.001)", "89.1 (0.1)", "89.0", "30")
    assert "over 4 seeds" in table.note
