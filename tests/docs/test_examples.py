"""Every block of Python on every page runs, and prints what the page says it prints."""

from __future__ import annotations

import re

import pytest

from tests.docs import pages

WITH_EXAMPLES = [name for name in pages.NAMES if pages.examples(pages.read(name))]


@pytest.mark.parametrize("page", WITH_EXAMPLES)
def test_the_examples_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "example"}
    for example in pages.examples(pages.read(page)):
        exec(compile(example, page, "exec"), namespace)
        assert capsys.readouterr().out.splitlines() == re.findall(r"# prints (.*)$", example, re.MULTILINE)


def test_readme_and_quickstart_have_examples():
    assert {"README.md", "docs/quickstart.md"} <= set(WITH_EXAMPLES)
