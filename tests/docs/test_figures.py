"""A published number is the stored one: where a comment behind it names a figure, the two are compared.

`0.50<!-- digits.tacit.progressive -->`, or in percent, or with the word `spread` or `seeds` after the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tacit.experiments.results import Results, published
from tests.docs import pages

COMMENT = re.compile(r"(?:(-?\d[\d,]*(?:\.(\d+))?)( ?%)?)?<!-- ([\w-]+(?:\.[\w-]+)+)(?: (spread|seeds))? -->")


def wrong(text: str, figures: Mapping[str, Any]) -> Iterator[str]:
    """What a page says that is not what is stored."""
    for shown, decimals, percent, name, part in COMMENT.findall(pages.plain(text)):
        if name not in figures:
            yield f"{name}: there is no such figure"
        elif not shown:
            yield f"{name}: no number stands before it"
        else:
            stored = figures[name][part or "value"] * (100 if percent else 1)
            rounded = f"{stored:.{len(decimals)}f}"
            if shown.replace(",", "") != rounded:
                yield f"{name}: {shown} is shown, {rounded} is stored"


@pytest.mark.parametrize("page", pages.NAMES)
def test_every_number_on_a_page_is_the_stored_one(page):
    assert list(wrong(pages.read(page), published(Results(pages.ROOT / "results")))) == []


FIGURES = {"a.b.reward": {"value": 0.7636, "spread": 0.0125, "seeds": 4}, "a.rounds": {"value": 60_000.0}}


@pytest.mark.parametrize("text", [
    "0.764<!-- a.b.reward -->", "0.8<!-- a.b.reward -->", "76.4 %<!-- a.b.reward -->", "76%<!-- a.b.reward -->",
    "| 0.764<!-- a.b.reward --> ± 0.013<!-- a.b.reward spread --> | 4<!-- a.b.reward seeds --> |",
    "60,000<!-- a.rounds -->", "no figure <!-- written by hand -->", "`1.0<!-- no.figure -->`",
])  # fmt: skip
def test_a_number_as_stored_passes(text):
    assert list(wrong(text, FIGURES)) == []


@pytest.mark.parametrize(("text", "problem"), [
    ("0.763<!-- a.b.reward -->", "a.b.reward: 0.763 is shown, 0.764 is stored"),
    ("0.7640<!-- a.b.reward -->", "a.b.reward: 0.7640 is shown, 0.7636 is stored"),
    ("0.764 %<!-- a.b.reward -->", "a.b.reward: 0.764 is shown, 76.360 is stored"),
    ("0.764<!-- a.b.reward spread -->", "a.b.reward: 0.764 is shown, 0.013 is stored"),
    ("0.764<!-- a.c.reward -->", "a.c.reward: there is no such figure"),
    ("good<!-- a.b.reward -->", "a.b.reward: no number stands before it"),
])  # fmt: skip
def test_another_number_is_found(text, problem):
    assert list(wrong(text, FIGURES)) == [problem]
