from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine._reference.codegen.code import (
    MAX_TEXT_BYTES,
    CodeFragment,
    CodegenContext,
    NotLoweredError,
    ValueKind,
)
from peripety.engine._reference.codegen.expressions import ExpressionCompiler
from peripety.engine._reference.codegen.runner import SOURCE_NAMES
from peripety.engine._reference.jsonlogic import Evaluation

if TYPE_CHECKING:
    from peripety.engine.paths import Path


VALUES: dict[str, Any] = {"n": 2.5, "flag": True, "mode": "aé", "blank": "", "gone": None, "list": [1.0, 0.5]}
VARIABLES: dict[Path, CodeFragment] = {
    ("n",): CodeFragment("n", ValueKind.NUMBER, bound=100.0),
    ("flag",): CodeFragment("flag", ValueKind.BOOLEAN, bound=1.0),
    ("mode",): CodeFragment("mode", ValueKind.TEXT, bound=100.0),
    ("blank",): CodeFragment("blank", ValueKind.TEXT, bound=100.0),
    ("gone",): CodeFragment("gone", ValueKind.NUMBER, bound=100.0, may_be_null=True),
    ("list",): CodeFragment("list", ValueKind.NUMBERS, bound=100.0, length=16),
}


class Names:
    def read_variable(self, path: Path) -> CodeFragment | None:
        return VARIABLES.get(path)


EXPRESSIONS = [
    {"cat": [{"var": "mode"}, "-", {"var": "n"}, {"var": "flag"}, {"var": "gone"}, {"var": "list"}]},
    {"cat": {"var": "list"}},
    {"cat": "x"},
    *(
        {"substr": [{"var": "mode"}, start, *rest]}
        for start in (0.0, 1.0, -1.0, 9.0)
        for rest in ([], [1.0], [-1.0])
    ),
    {"substr": [{"var": "n"}, {"var": "gone"}, {"var": "flag"}]},
    {"substr": ["word", "1", None]},
    {"missing": ["n", "blank", "gone", "nothing"]},
    {"missing": [["mode", "nothing"]]},
    {"missing": "nothing"},
    *({"missing_some": [needed, ["n", "mode", "gone"]]} for needed in (1.0, 2.0, 3.0)),
]


@pytest.mark.parametrize("logic", EXPRESSIONS, ids=str)
def test_what_is_lowered_gives_what_the_interpreter_gives_in_no_fewer_steps(logic: Any) -> None:
    draft, run = CodegenContext(16), Evaluation()
    code = ExpressionCompiler(draft).value(logic, Names())
    made = run.output
    expected = run.evaluate(logic, VALUES)
    assert eval(code.text, {**SOURCE_NAMES, **draft.names, **VALUES}) == expected  # noqa: S307 - made above
    assert code.steps >= run.total_cost + made - run.output


def test_texts_that_may_become_long_are_held_to_the_limit() -> None:
    code = ExpressionCompiler(CodegenContext(16)).value({"cat": [{"var": "mode"}] * 20}, Names())
    assert code.text.startswith("brief(")
    assert code.bound == MAX_TEXT_BYTES


@pytest.mark.parametrize(
    "logic",
    [
        {"substr": [{"var": "mode"}, {"var": "list"}]},
        {"substr": {"var": "mode"}},
        {"missing": [{"var": "mode"}]},
        {"missing_some": [{"var": "n"}, ["n"]]},
    ],
)
def test_what_is_computed_or_always_fails_is_left_to_the_interpreter(logic: Any) -> None:
    with pytest.raises(NotLoweredError):
        ExpressionCompiler(CodegenContext(16)).value(logic, Names())
