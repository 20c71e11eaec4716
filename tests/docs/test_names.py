"""What the pages name exists, and what is promised is named."""

from __future__ import annotations

import inspect
import re
import tomllib

import pytest

import tacit
from tacit import errors
from tests.docs import pages

API = "docs/reference/api.md"
BESIDE_CODE = [name for name in pages.NAMES if name.startswith("docs/algorithms/")] + ["docs/guides/extending.md", API]
FOLDERS = ("src/", "tests/", "tools/", "docs/")
LEARNERS = [
    kind(2, tacit.Category(2), tacit.Category(2), decoder=tacit.Decoder(1.0, 0.2))
    for kind in (tacit.OffPolicy, tacit.TwoView)
]


@pytest.mark.parametrize("name", tacit.__all__)
def test_every_promised_name_is_documented(name):
    assert f"tacit.{name}" in pages.spans(pages.read(API))


@pytest.mark.parametrize("row", [row for row in pages.rows(pages.read(API)) if len(row) == 3 and "`" in row[2]])
def test_parameters_are_named_as_they_are(row):
    (name,) = pages.spans(row[0])
    parameters = list(inspect.signature(pages.named(name)).parameters)
    assert pages.spans(row[2]) == parameters


@pytest.mark.parametrize("page", pages.NAMES)
def test_every_name_that_starts_with_tacit_exists(page):
    for span in pages.spans(pages.read(page)):
        if match := re.match(r"tacit(?:\.\w+)+", span):
            pages.named(match[0])


@pytest.mark.parametrize("page", BESIDE_CODE)
def test_every_name_beside_the_paper_exists(page):
    dotted = [span for span in pages.spans(pages.read(page)) if pages.DOTTED.fullmatch(span)]
    assert dotted
    for span in dotted:
        if span.startswith("learner."):
            assert any(hasattr(learner, span.removeprefix("learner.")) for learner in LEARNERS), span
        elif not span.endswith((".py", ".json", ".toml")):
            pages.named(span)


@pytest.mark.parametrize("page", pages.NAMES)
def test_every_place_that_is_named_exists(page):
    for span in pages.spans(pages.read(page)):
        if span.startswith(FOLDERS):
            assert (pages.ROOT / span).exists(), span


@pytest.mark.parametrize("page", pages.NAMES)
def test_every_error_that_is_named_exists(page):
    for span in pages.spans(pages.read(page)):
        if re.fullmatch(r"[A-Z]\w+(Error|Warning)", span):
            assert hasattr(tacit, span), span


def test_the_errors_are_drawn_as_in_the_code():
    (drawing,) = (body for language, body in pages.FENCED.findall(pages.read("docs/guides/errors.md")) if not language)
    assert drawing.strip() == str(errors.__doc__).split("\n", 1)[1].strip()


def test_an_unknown_name_is_found():
    assert pages.named("decoder.Decoder.step") is tacit.Decoder.step
    with pytest.raises(AttributeError):
        pages.named("decoder.Decoder.leap")


def test_readme_shows_where_everything_is():
    first = [place for row in pages.rows(pages.read("README.md")) for place in pages.spans(row[0])]
    assert {place for place in first if not (pages.ROOT / place).exists()} == set()
    packages = {path.parent.name for path in (pages.ROOT / "src" / "tacit").glob("*/__init__.py")}
    assert packages == {place.split("/")[2] for place in first if re.fullmatch(r"src/tacit/\w+/", place)}


def test_the_layers_are_those_that_are_enforced():
    present = {path.stem for path in (pages.ROOT / "src" / "tacit").iterdir()}
    contracts = pyproject()["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    enforced = [present & set(re.findall(r"\w+", layer)) for layer in layers]
    (drawn,) = re.findall(r"the layers are:(.*?)\.\n", pages.read("CONTRIBUTING.md"), re.DOTALL)
    assert [set(pages.spans(layer)) for layer in drawn.split(">")] == [layer for layer in enforced if layer]


def test_the_version_is_the_same_everywhere():
    (latest, *_) = re.findall(r"^## \[(.+?)\]", pages.read("CHANGELOG.md"), re.MULTILINE)
    assert tacit.__version__ == pyproject()["project"]["version"] == latest


def pyproject():
    return tomllib.loads(pages.read("pyproject.toml"))
