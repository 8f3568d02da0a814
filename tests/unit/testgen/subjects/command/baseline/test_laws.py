from __future__ import annotations

from peripety.testgen.subjects.command.baseline.expectations import (
    LawCall,
    holding_laws,
    iterate_documented_calls,
    iterate_laws,
)
from peripety.testgen.subjects.command.python_mutants import PythonModule
from peripety.testgen.subjects.command.python_program import PythonCall

SOURCE = '''\
def encode(text):
    """
    >>> encode("a b")
    'a%20b'
    """


def decode(text): ...


def normalize_name(text):
    """
    >>> normalize_name("A")
    'a'
    """


def compare(one, other):
    """
    >>> compare(1, 2)
    -1
    >>> compare(2, 2)
    0
    """


def length(text) -> int:
    """
    >>> length("abc")
    3
    """


def lonely_decode(text): ...
'''


def laws() -> dict[str, list[str]]:
    modules = {"p.py": PythonModule("p.py", SOURCE.encode())}
    found: dict[str, list[str]] = {}
    for law in iterate_laws(modules, iterate_documented_calls(modules), ()):
        found.setdefault(law.law, []).append(law.call.code)
    return found


def test_inverse_functions_undo_each_other() -> None:
    assert laws()["law: decode reverses encode"] == ["decode(encode('a b')) == 'a b'"]


def test_normalizing_twice_changes_nothing() -> None:
    (code,) = laws()["law: normalize_name changes nothing the second time"]
    assert code == "normalize_name(normalize_name('A')) == normalize_name('A')"


def test_comparing_in_the_opposite_order_gives_the_opposite() -> None:
    assert laws()["law: compare gives the opposite result in the opposite order"] == [
        "compare(1, 2) == -compare(2, 1)",
    ]


def test_an_annotated_result_has_its_type() -> None:
    assert laws()["type: p.length returns int"] == ["isinstance(length('abc'), int)"]


def test_the_law_of_a_type_is_used_for_a_single_value() -> None:
    modules = {"p.py": PythonModule("p.py", SOURCE.encode())}
    found = [*iterate_laws(modules, iterate_documented_calls(modules), ())]
    kept = holding_laws([(law, True) for law in found])
    assert [law.law for law in kept] == ["type: p.length returns int"]


def test_a_law_of_a_name_is_used_if_it_holds_for_most_values() -> None:
    def results(name: str, *held: bool) -> list[tuple[LawCall, bool]]:
        return [
            (LawCall(name, PythonCall("p", f"{name}({number})"), name), holds)
            for number, holds in enumerate(held)
        ]

    usual, rare, few = (
        results("usual", True, True, True, False),
        results("rare", True, False, False),
        results("few", True, True),
    )
    assert holding_laws([*usual, *rare, *few]) == [law for law, _ in usual]
