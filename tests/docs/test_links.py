"""Every page is in the navigation, and every link within the project leads somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import yaml

from tests.docs import pages


def links(text: str) -> list[str]:
    found = re.findall(r"\]\(([^)\s]+)\)", pages.plain(text))
    return [link for link in found if not re.match(r"https?:|mailto:", link)]


def dead(page: str, text: str) -> Iterator[str]:
    """The links of a page that lead nowhere."""
    here = pages.ROOT / page
    for link in links(text):
        path, _, anchor = link.partition("#")
        target = here.parent / path if path else here
        there = text if target == here else target.read_text(encoding="utf-8") if target.is_file() else ""
        if not target.exists() or (anchor and anchor not in pages.anchors(there)):
            yield link


def listed(entry: object) -> Iterator[str]:
    """The pages under an entry of the navigation."""
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict | list):
        for inner in entry.values() if isinstance(entry, dict) else entry:
            yield from listed(inner)


def test_every_page_is_in_the_navigation_once():
    navigation = list(listed(yaml.safe_load(pages.read("mkdocs.yml"))["nav"]))
    assert sorted(navigation) == sorted(page.relative_to(pages.DOCS).as_posix() for page in pages.DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", pages.NAMES)
def test_every_link_leads_somewhere(page):
    assert list(dead(page, pages.read(page))) == []


@pytest.mark.parametrize("link", ["docs/nowhere.md", "docs/concepts.md#nowhere", "#nowhere"])
def test_a_dead_link_is_found(link):
    assert list(dead("README.md", f"# Here\n[there]({link}), `[code](x.md)`, [out](https://example.org)")) == [link]


def test_a_link_to_a_heading_of_the_same_page_is_followed():
    assert list(dead("README.md", "# What `this` is\n[up](#what-this-is)")) == []
