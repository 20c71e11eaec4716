"""The size limits: what counts, what does not, and how an excess is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import sizes


@pytest.fixture
def check(tmp_path: Path):
    def check_text(text: str) -> list[str]:
        path = tmp_path / "module.py"
        path.write_text(text)
        return list(sizes.check(path))

    return check_text


def function(lines: int, docstring: str = "") -> str:
    return f"def f():\n{docstring}" + "    pass\n" * lines


def a_class(methods: int, name: str = "method") -> str:
    return "class C:\n" + "".join(f"    def {name}{i}(self): ...\n" for i in range(methods))


def constructor(parameters: int, tail: str = "") -> str:
    names = "".join(f", a{i}" for i in range(parameters))
    return f"class C:\n    def __init__(self{names}{tail}): ...\n"


def test_a_function_may_fill_its_limit(check):
    assert check(function(40)) == []


def test_a_long_function_is_named_with_its_line(check):
    assert check("\n" + function(41)) == ["2: function `f` has 41 lines, at most 40 are allowed"]


def test_a_docstring_and_a_wrapped_signature_do_not_count(check):
    docstring = '    """Long.\n' + "\n" * 30 + '    """\n'
    wrapped = function(40, docstring).replace("f()", "f(\n    a,\n    b,\n)")
    assert check(wrapped) == []


def test_a_docstring_alone_is_no_body(check):
    assert check(function(0, '    """Only words."""\n')) == []


def test_async_functions_and_methods_count_too(check):
    method = "class C:\n    async def f(self):\n" + "        pass\n" * 41
    assert check(method) == ["2: function `f` has 41 lines, at most 40 are allowed"]


def test_a_long_file_is_refused(check):
    assert check("a = 1\n" * 400) == []
    assert check("a = 1\n" * 401) == ["1: the file has 401 lines, at most 400 are allowed"]


def test_public_methods_are_counted_and_private_ones_are_not(check):
    assert check(a_class(15)) == []
    assert check(a_class(30, "_method")) == []
    assert check(a_class(16)) == ["1: class `C` has 16 public methods, at most 15 are allowed"]


def test_overloads_of_a_method_count_once(check):
    assert check("class C:\n" + "    def same(self): ...\n" * 20) == []


def test_constructor_parameters_are_counted_without_self(check):
    assert check(constructor(8)) == []
    assert check(constructor(9)) == ["2: the constructor of `C` has 9 parameters, at most 8 are allowed"]
    assert check(constructor(7, ", *, a, **rest")) != []


def test_a_dataclass_may_have_more_fields(check):
    fields = "".join(f"    a{i}: int = 0\n" for i in range(12))
    assert check(f"from dataclasses import dataclass\n\n@dataclass\nclass C:\n{fields}") == []


def test_a_file_that_cannot_be_parsed_is_reported(check):
    (problem,) = check("def f(:\n")
    assert problem.startswith("1: cannot be parsed")


def test_main_looks_in_the_named_folders_only_and_says_where(tmp_path, capsys):
    for folder in ("src/tacit", "docs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "long.py").write_text(function(41))
    assert sizes.main(tmp_path) == 1
    assert capsys.readouterr().out.splitlines() == [
        "src/tacit/long.py:1: function `f` has 41 lines, at most 40 are allowed",
        "sizes: 1 over the limit",
    ]


def test_main_accepts_what_is_within_the_limits(tmp_path, capsys):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "short.py").write_text(function(1))
    assert sizes.main(tmp_path) == 0
    assert capsys.readouterr().out == "sizes: 1 files within the limits\n"
