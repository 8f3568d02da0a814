from __future__ import annotations

import pytest

from peripety.testgen.subjects.command.baseline.expectations import (
    DocumentedCall,
    iterate_documented_calls,
    iterate_documented_commands,
    iterate_readme_calls,
)
from peripety.testgen.subjects.command.python_mutants import PythonModule

SOURCE = '''\
"""A package."""


class Box:
    def opened(self):
        """Open it.

        >>> box = Box()
        >>> box.opened()
        'open'
        >>> box.opened(1)
        Traceback (most recent call last):
            ...
        package.errors.NotOpenedError: no key
        >>> box  # doctest: +SKIP
        1
        >>> box.opened
        <bound method at 0x7f3>
        """
'''


def calls_of(source: str, name: str = "package/__init__.py") -> list[DocumentedCall]:
    return [*iterate_documented_calls({name: PythonModule(name, source.encode())})]


def test_an_example_has_its_result_its_place_and_the_statements_that_it_needs() -> None:
    first, second = calls_of(SOURCE)
    assert (first.call.module, first.call.code) == ("package", "box = Box()\nbox.opened()")
    assert (first.expected, first.function) == ("'open'", "Box.opened")
    assert first.citation == "package/__init__.py, line 9: >>> box.opened() 'open'"
    assert (second.expected, second.is_error) == ("NotOpenedError: no key", True)


def test_results_that_are_not_written_down_in_full_are_left_out() -> None:
    assert all("0x" not in call.expected for call in calls_of(SOURCE))
    assert calls_of('def f():\n    """\n    >>> f()\n    [1, ..., 9]\n    """\n') == []


@pytest.mark.parametrize("text", ["", ">>> f(", ">>> f()\n", "no example"])
def test_a_text_without_an_example_gives_nothing(text: str) -> None:
    assert [*iterate_readme_calls(text, "package")] == []


def test_the_end_of_a_code_block_is_no_output() -> None:
    text = "# tool\n\n```pycon\n>>> size(1)\n'1 B'\n```\n\n~~~\n>>> size(2)\n'2 B'\n~~~\n"
    first, second = iterate_readme_calls(text, "tool")
    assert (first.expected, second.expected) == ("'1 B'", "'2 B'")
    assert second.citation == "README, line 9: >>> size(2) '2 B'"


README = """\
# tool

    $ tool add 1 2
    3

```
$ python -m tool list --all
$ tool secret | grep x
$ other 1
```
"""


def test_commands_in_a_readme_have_the_output_below_them() -> None:
    add, listed = iterate_documented_commands(README, {"tool"})
    assert (add.arguments, add.expected) == (("add", "1", "2"), "3")
    assert add.citation == "README, line 3: $ tool add 1 2 3"
    assert (listed.arguments, listed.expected) == (("list", "--all"), None)


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        (">>> size(1)\n# Output: '1 B'\n", "'1 B'"),
        (">>> size(1)\n# Output: [1,\n# 2]\n", "[1,\n2]"),
        (">>> size(1)  # => '1 B'\n", "'1 B'"),
        (">>> size(1)\n# a remark on sizes\n", None),
        (">>> size(1)  # a remark on sizes\n", None),
        (">>> size('# => 1')\n", None),
        (">>> size(1)\n'1 B'\n", "'1 B'"),
    ],
)
def test_a_comment_is_a_result_if_it_says_so(example: str, expected: str | None) -> None:
    found = [call.expected for call in iterate_readme_calls(example, "tool")]
    assert found == ([] if expected is None else [expected])


def test_an_example_knows_the_calls_before_it_that_show_nothing() -> None:
    text = (
        ">>> import io\n>>> text = io.StringIO()\n>>> write(text)\n>>> text.tell()\n3\n"
        ">>> import io\n>>> print(text.read())\n\n>>> text.getvalue()\n'abc'\n"
    )
    first, second = iterate_readme_calls(text, "tool")
    start = "import io\ntext = io.StringIO()"
    assert first.call.code == f"{start}\ntext.tell()"
    assert first.whole is not None
    assert first.whole.code == f"{start}\n_ = write(text)\ntext.tell()"
    assert first.is_incomplete
    assert second.whole is not None
    assert second.whole.code == f"{start}\n_ = write(text)\n_ = text.tell()\ntext.getvalue()"
    (alone,) = iterate_readme_calls(">>> size(1)\n'1 B'\n", "tool")
    assert (alone.whole, alone.is_incomplete) == (None, False)


def test_examples_of_private_functions_are_left_out() -> None:
    source = 'def {0}():\n    """\n    >>> {0}()\n    1\n    """\n    return 1\n'
    assert calls_of(source.format("_size")) == []
    assert len(calls_of(source.format("size"))) == 1
