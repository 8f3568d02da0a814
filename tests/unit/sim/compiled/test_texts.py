from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.sim._pure.compiled.code import LONGEST_TEXT, Code, Kind, NotLoweredError
from peripety.sim._pure.compiled.draft import Draft
from peripety.sim._pure.compiled.expressions import Expressions
from peripety.sim._pure.compiled.player import NAMES
from peripety.sim._pure.logic import Evaluation

if TYPE_CHECKING:
    from peripety.sim._pure.paths import Path

VALUES: dict[str, Any] = {"n": 2.5, "flag": True, "mode": "aé", "blank": "", "gone": None, "list": [1.0, 0.5]}
VARIABLES: dict[Path, Code] = {
    ("n",): Code("n", Kind.NUMBER, bound=100.0),
    ("flag",): Code("flag", Kind.BOOLEAN, bound=1.0),
    ("mode",): Code("mode", Kind.TEXT, bound=100.0),
    ("blank",): Code("blank", Kind.TEXT, bound=100.0),
    ("gone",): Code("gone", Kind.NUMBER, bound=100.0, null=True),
    ("list",): Code("list", Kind.NUMBERS, bound=100.0, length=16),
}


class Names:
    def read(self, path: Path) -> Code | None:
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
    draft, run = Draft(16), Evaluation()
    code = Expressions(draft).value(logic, Names())
    made = run.output
    expected = run.value(logic, VALUES)
    assert eval(code.text, {**NAMES, **draft.names, **VALUES}) == expected  # noqa: S307 - made above
    assert code.steps >= run.spent + made - run.output


def test_texts_that_may_become_long_are_held_to_the_limit() -> None:
    code = Expressions(Draft(16)).value({"cat": [{"var": "mode"}] * 20}, Names())
    assert code.text.startswith("brief(")
    assert code.bound == LONGEST_TEXT


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
        Expressions(Draft(16)).value(logic, Names())
