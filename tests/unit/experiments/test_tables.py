"""Tables: everything said is shown, and nothing in it is taken for markup."""

from __future__ import annotations

import io

from rich.console import Console

from tacit.experiments import tables
from tacit.experiments.spec import Table

TABLE = Table("t", "Who [won]", ("who", "score|points"), (("a [b]", "1"), ("c|d", "20")), note="All [of] it.")


def test_a_table_in_a_terminal_shows_title_header_lines_and_note():
    shown = io.StringIO()
    Console(file=shown, width=100).print(tables.rich(TABLE))
    for text in ("Who [won]", "who", "score|points", "a [b]", "20", "All [of] it."):
        assert text in shown.getvalue()


def test_a_table_on_a_page_keeps_its_columns():
    assert tables.markdown(TABLE) == (
        "**Who [won]**\n\n"
        "| who | score\\|points |\n| --- | ---: |\n| a [b] | 1 |\n| c\\|d | 20 |\n\n"
        "All [of] it.\n"
    )  # fmt: skip


def test_a_table_without_a_note_ends_with_its_lines():
    table = Table("t", "Title", ("a",), (("b",),))
    assert tables.markdown(table) == "**Title**\n\n| a |\n| --- |\n| b |\n"
