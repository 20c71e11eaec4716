"""The reference of the command line is what the commands say of themselves."""

from __future__ import annotations

from tools import cli_reference


def test_the_page_names_every_command_and_option():
    page = cli_reference.PAGE.read_text(encoding="utf-8")
    assert page == cli_reference.page(), "renew it with: python tools/cli_reference.py"
    for said in ("## tacit demo", "## tacit experiment NAME", "## tacit results", "`--jobs N`", "`--page FILE`"):
        assert said in page


def test_no_option_goes_without_an_explanation():
    rows = [line for line in cli_reference.page().splitlines() if line.startswith("| `")]
    assert len(rows) >= 10
    assert all(len(row.split("|")[2].strip()) > 10 for row in rows)
