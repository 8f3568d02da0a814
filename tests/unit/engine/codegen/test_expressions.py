from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine._reference.codegen.code import (
    MAX_NUMBER,
    CodeFragment,
    CodegenContext,
    NotLoweredError,
    ValueKind,
)
from peripety.engine._reference.codegen.expressions import ExpressionCompiler
from peripety.engine._reference.jsonlogic import FUEL, OUTPUT_LIMIT, Evaluation

if TYPE_CHECKING:
    from peripety.engine.paths import Path


A = {"var": "a"}
VARIABLES: dict[Path, CodeFragment] = {
    ("a",): CodeFragment("s0", ValueKind.NUMBER, bound=100.0),
    ("huge",): CodeFragment("s1", ValueKind.NUMBER, bound=MAX_NUMBER),
    ("flag",): CodeFragment("s2", ValueKind.BOOLEAN, bound=1.0),
    ("mode",): CodeFragment("s3", ValueKind.TEXT, bound=10.0),
    ("list",): CodeFragment("s4", ValueKind.NUMBERS, bound=100.0, length=16),
}


class Names:
    def read_variable(self, path: Path) -> CodeFragment | None:
        return VARIABLES.get(path)


def lower(logic: Any) -> CodeFragment:
    return ExpressionCompiler(CodegenContext(16)).value(logic, Names())


@pytest.mark.parametrize(
    ("logic", "text"),
    [
        ({">": [A, 2]}, "s0 > 2.0"),
        ({"<": [1, A, 5]}, "1.0 < s0 < 5.0"),
        ({"==": [A, "3"]}, "s0 == 3.0"),
        ({"==": [{"var": "flag"}, 1]}, "s2 == 1.0"),
        ({"+": [A, {"var": "flag"}]}, "s0 + (s2 + 0.0)"),
        ({"-": [A]}, "0.0 - s0"),
        ({"*": [A, 0.5]}, "s0 * 0.5 + 0.0"),
        ({"/": [A, 4]}, "s0 / 4.0 + 0.0"),
        ({"%": [A, 4]}, "fmod(s0, 4.0) + 0.0"),
        ({"min": [A, 4]}, "4.0 if 4.0 < s0 else s0"),
        ({"if": [{"var": "flag"}, A, 0]}, "s0 if s2 else 0.0"),
        ({"in": [A, {"var": "list"}]}, "s0 in s4"),
        ({"some": [{"var": "list"}, {">": [{"var": ""}, 1]}]}, "any([x > 1.0 for x in s4])"),
        ({"all": [{"var": "list"}, {">": [{"var": ""}, 1]}]}, "all([x > 1.0 for x in s4] or [False])"),
        ({"+": {"var": "list"}}, "sum_of(s4)"),
        ({"var": ["nothing", 7.0]}, "7.0"),
        ({"==": [{"var": "mode"}, A]}, "held(as_number(s3)) == s0"),
        ({"if": [{"var": "flag"}, A]}, "s0 if s2 else None"),
        ({"merge": [A, {"var": "list"}]}, "[s0, *s4]"),
    ],
)
def test_what_has_one_python_spelling_is_lowered_to_it(logic: Any, text: str) -> None:
    assert lower(_floats(logic)).text == text


@pytest.mark.parametrize("name", ["max", "/", "if", "cat", "substr", "missing_some", "var"])
def test_source_grows_no_faster_than_the_expression(name: str) -> None:
    def nested(depth: int) -> Any:
        logic: Any = A
        for _ in range(depth):
            logic = {
                "max": {"max": [{"/": [logic, A]}, {"%": [1.0, A]}]},
                "/": {"/": [logic, A]},
                "if": {"if": [logic, A, 1.0]},
                "cat": {"cat": [logic, A]},
                "substr": {"substr": [logic, A]},
                "missing_some": {"if": [{"missing_some": [1.0, ["a"]]}, logic, A]},
                "var": {"var": ["nothing", {"+": [logic, 1.0]}]},
            }[name]
        return logic

    assert len(lower(nested(8)).text) < 10 * len(lower(nested(1)).text)


@pytest.mark.parametrize("name", ["+", "-", "*", "max", "cat", "!", "!!", "if"])
def test_an_operand_is_lowered_once(name: str) -> None:
    """Otherwise each level of nesting would double the time."""
    logic: Any = A
    for _ in range(60):
        logic = {name: [logic, 1.0] if name == "if" else logic}
    assert lower(logic).steps > 60


def test_a_fold_keeps_its_order() -> None:
    logic = {"reduce": [{"var": "list"}, {"-": [{"var": "accumulator"}, {"var": "current"}]}, 0.0]}
    assert lower(logic).text == "reduce(lambda total, x: total - x, s4, 0.0)"


def test_numbers_that_may_leave_the_limit_are_held_to_it() -> None:
    assert lower({"*": [{"var": "huge"}, 2.0]}).text == "held(s1 * 2.0 + 0.0)"
    assert lower({"/": [1.0, A]}).text == "held(1.0 / s0 + 0.0)"


@pytest.mark.parametrize(
    ("logic", "fails"),
    [
        ({"/": [A, 2.0]}, False),
        ({"/": [2.0, A]}, True),
        ({"%": [2.0, A]}, True),
        ({"max": {"var": "list"}}, True),
    ],
)
def test_it_is_known_what_may_leave_a_run(logic: Any, fails: bool) -> None:
    assert lower(logic).may_fail is fails


@pytest.mark.parametrize(
    "logic",
    [
        {"==": ["1", "1.0", A]},
        {"==": [A, "word"]},
        {"===": [{"var": "flag"}, A]},
        {"===": [{"var": "list"}, {"var": "list"}]},
        {"in": [{"var": "mode"}, {"var": "list"}]},
        {"max": [A, {"var": "flag"}]},
        {"if": [{"var": "flag"}, A, "x"]},
        {"and": [A, {"var": "flag"}]},
        {"+": [{"var": "list"}]},
        {"missing": [{"cat": ["a"]}]},
        {"merge": [{"var": "list"}, "x"]},
        {"var": {"cat": ["a"]}},
        {"some": [A, True]},
        {"a": 1.0, "b": 2.0},
        [],
        1e200,
        "x" * 2000,
    ],
)
def test_what_depends_on_kinds_or_always_fails_is_left_to_the_interpreter(logic: Any) -> None:
    with pytest.raises(NotLoweredError):
        lower(logic)


@pytest.mark.parametrize(
    "logic",
    [
        {"and": [{">": [A, 1.0]}, {"!": [{"var": "flag"}]}]},
        {"reduce": [{"var": "list"}, {"+": [{"var": "current"}, {"var": "accumulator"}]}, 0.0]},
        {"filter": [{"var": "list"}, {">": [{"var": ""}, 1.0]}]},
        {"map": [{"var": "list"}, {"*": [{"var": ""}, 2.0]}]},
        {"===": [A, 1.0]},
        {"in": [A, [1.0, 2.0, 3.0]]},
        {"max": {"var": "list"}},
        {"merge": [{"var": "list"}, A, {"var": "list"}]},
        {"if": [{"var": "flag"}, 1.0, {"var": "flag"}, 2.0]},
        {"if": [A]},
        {"var": ["nothing", {"+": [1.0, 2.0]}]},
    ],
)
def test_steps_are_never_fewer_than_the_interpreter_takes(logic: Any) -> None:
    run = Evaluation()
    run.evaluate(logic, {"a": 2.0, "flag": False, "list": [float(n) for n in range(16)]})
    assert lower(logic).steps >= (FUEL - run.fuel) + (OUTPUT_LIMIT - run.output)


def _floats(logic: Any) -> Any:
    """Numbers as the border reads them."""
    if isinstance(logic, dict):
        return {key: _floats(value) for key, value in logic.items()}
    if isinstance(logic, list):
        return [_floats(item) for item in logic]
    return float(logic) if isinstance(logic, int) and not isinstance(logic, bool) else logic
