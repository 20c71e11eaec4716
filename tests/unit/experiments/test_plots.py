"""Plots: real pictures in which every curve can be seen, on any page."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from tacit.experiments import plots
from tacit.experiments.spec import Curve, Plot

X = list(range(1, 11))
SVG = "{http://www.w3.org/2000/svg}"


def plot(curves: int, logarithmic: bool = False, band: bool = False) -> Plot:
    levels = [[10.0 * number] * len(X) for number in range(1, curves + 1)]
    drawn = tuple(
        Curve(f"curve {number}", X, y, [v - 4 for v in y] if band else (), [v + 4 for v in y] if band else ())
        for number, y in enumerate(levels)
    )
    return Plot("picture", "A title", "over", "up", drawn, logarithmic)


def pixels(path: Path) -> NDArray[np.float32]:
    return matplotlib.image.imread(path)


def share(path: Path, colour: str) -> float:
    """How much of a picture has a colour, exactly."""
    return float((np.abs(pixels(path)[..., :3] - to_rgb(colour)) < 2 / 255).all(-1).mean())


def luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("logarithmic", [False, True])
def test_a_plot_is_a_png_and_an_svg_with_every_curve_in_its_colour(tmp_path, logarithmic):
    png, svg = plots.save(plot(len(plots.COLOURS), logarithmic), tmp_path)
    assert (png.name, svg.name) == ("picture.png", "picture.svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert ET.parse(svg).getroot().tag == f"{SVG}svg"
    for colour in plots.COLOURS:
        assert share(png, colour) > 0.001
        assert f"stroke: {colour}" in svg.read_text()


def test_the_background_is_opaque_so_that_it_reads_on_any_page(tmp_path):
    png, _ = plots.save(plot(1), tmp_path)
    assert (pixels(png)[..., 3] == 1).all()
    assert share(png, plots.PAPER) > 0.5


def test_letters_and_lines_stand_out_from_the_background():
    assert contrast(plots.INK, plots.PAPER) > 7
    assert min(contrast(colour, plots.PAPER) for colour in plots.COLOURS) > 3


def test_a_band_is_drawn_around_its_curve(tmp_path):
    (bare, _), (banded, _) = plots.save(plot(1), tmp_path / "a"), plots.save(plot(1, band=True), tmp_path / "b")
    assert share(banded, plots.PAPER) < share(bare, plots.PAPER) - 0.05


def test_more_curves_than_colours_differ_by_their_lines(tmp_path):
    _, svg = plots.save(plot(len(plots.COLOURS) + 1), tmp_path)
    first = [line for line in svg.read_text().splitlines() if f"stroke: {plots.COLOURS[0]}" in line]
    assert {"stroke-dasharray" in line for line in first} == {True, False}


def test_the_same_plot_gives_the_same_bytes(tmp_path):
    first, second = plots.save(plot(2), tmp_path / "a"), plots.save(plot(2), tmp_path / "b")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_logarithmic_axes_are_labelled_where_was_measured_in_plain_numbers(tmp_path):
    steep = Curve("regret", (300, 1_000, 3_162), (10, 100, 1_000))
    _, svg = plots.save(Plot("picture", "A title", "over", "up", (steep,), logarithmic=True), tmp_path)
    for label in ("300", "1,000", "3,162", "10", "100"):
        assert f"<!-- {label} -->" in svg.read_text()
