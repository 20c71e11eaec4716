"""The pages of the project, and what stands on them."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from markdown.extensions.toc import slugify

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def examples(text: str) -> list[str]:
    """The blocks of Python, each behind as many empty lines as stand before it, so that errors name the right one."""
    return [
        "\n" * text.count("\n", 0, match.start(2)) + match[2] for match in FENCED.finditer(text) if match[1] == "python"
    ]


def prose(text: str) -> str:
    """All but fenced blocks."""
    return FENCED.sub("", text)


def spans(text: str) -> list[str]:
    """What is set as code within the text."""
    return SPAN.findall(prose(text))


def plain(text: str) -> str:
    """All that is not set as code."""
    return SPAN.sub("", prose(text))


def rows(text: str) -> list[list[str]]:
    """The cells of every line of a table, headers among them."""
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in prose(text).splitlines() if line.startswith("|")
    ]  # fmt: skip


def anchors(text: str) -> set[str]:
    """Where a link can lead to within a page."""
    return {slugify(heading.replace("`", ""), "-") for heading in re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)}


def named(dotted: str) -> object:
    """What a name stands for, such as `decoder.G` or `tacit.Decoder.step`: an AttributeError if it is not there."""
    found: object = import_module("tacit")
    path = "tacit"
    for part in dotted.removeprefix("tacit.").split("."):
        path = f"{path}.{part}"
        try:
            found = import_module(path)
        except ModuleNotFoundError:
            found = getattr(found, part)
    return found
