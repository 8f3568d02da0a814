from __future__ import annotations

from peripety.testgen.subjects.command.baseline.values import (
    SourceFunctions,
    SourceValue,
    find_pattern_values,
    find_values,
)
from peripety.testgen.subjects.command.python_mutants import PythonModule

SOURCE = '''\
import re

NAMES = {"low", "high"}


def graded(value):
    """Return a grade."""
    if value % 100 in (11, 12):
        return "special"
    return 10**3 if value < 50 else value.endswith("_x")


def named(text):
    return text in NAMES and re.search(r"^a\\d+$", text)


def unused():
    return 7777
'''


def functions() -> SourceFunctions:
    return SourceFunctions({"p.py": PythonModule("p.py", SOURCE.encode())})


def values() -> list[SourceValue]:
    module = [("p.py", "NAMES", "text", "high"), ("p.py", "OTHER", "text", "nowhere")]
    return find_values(functions(), module)


def texts(line: int) -> set[str]:
    return {value.text for value in values() if ("p.py", line) in value.functions}


def test_numbers_come_with_their_neighbours_opposites_and_sums() -> None:
    assert {"11", "12", "10", "13", "-11", "111", "50", "49", "51", "1000", "999"} <= texts(6)


def test_a_value_of_a_module_belongs_to_the_functions_that_use_its_name() -> None:
    assert "high" in texts(13)
    assert all(value.text != "nowhere" for value in values())


def test_patterns_give_matches_and_near_misses_and_texts_their_surroundings() -> None:
    assert {"a1", "a1x", "xa1"} <= texts(13)
    assert {"ab_x", "_xab"} <= texts(6)


def test_values_belong_to_their_function_alone() -> None:
    assert "7777" not in texts(6) | texts(13)


def test_a_docstring_is_not_a_value() -> None:
    assert "Return a grade." not in texts(6)


def test_functions_are_reached_by_their_lines_without_the_one_that_defines_them() -> None:
    assert functions().reached({"p.py": frozenset({6})}) == set()
    assert functions().reached({"p.py": frozenset({8}), "q.py": frozenset({14})}) == {("p.py", 6)}


DOCUMENTED = '''\
def read(text, limit=8):
    """Read a span such as "3 weeks" or ``2 days``; `limit` is the most.

    read("1 hour", 5) gives 3600.
    """
    if len(text) > limit and len(text) == 3:
        return float(text)
    return {"day": 1, "week": 7}[text.strip()]


def other(text):
    return text.strip("-"), text.islower()
'''


def documented() -> SourceFunctions:
    return SourceFunctions({"p.py": PythonModule("p.py", DOCUMENTED.encode())})


def documented_texts(line: int, readme: str = "") -> set[str]:
    found = find_values(documented(), (), readme)
    return {value.text for value in found if ("p.py", line) in value.functions}


def test_documentation_gives_quoted_texts_and_first_arguments() -> None:
    assert {"3 weeks", "2 days", "1 hour"} <= documented_texts(1)
    assert "limit" not in documented_texts(1)
    assert "5 weeks" in documented_texts(1, "print(spans.read('5 weeks'))")
    assert {"5 weeks", "3 weeks"}.isdisjoint(documented_texts(11, "spans.read('5 weeks')"))


def test_compared_lengths_tables_and_methods_give_texts() -> None:
    assert {"ab", "abc", "abcd", "12", "123", "1234"} <= documented_texts(1)
    assert {"day", "week", "nan", " ab "} <= documented_texts(1)
    assert "ABC" in documented_texts(11)
    assert " ab " not in documented_texts(11)


def test_a_pattern_that_a_call_used_belongs_to_the_function_with_its_line() -> None:
    used = [("p.py", 8, r"^T\d+H$"), ("p.py", 90, r"^Z\d+$")]
    found = find_pattern_values(documented(), used, ())
    assert {"T1H", "T11H"} <= {value.text for value in found}
    assert {place for value in found for place in value.functions} == {("p.py", 1)}
    assert find_pattern_values(documented(), used, found) == []
