"""Random JSONLogic from a seed, quickly: any operator over anything, most of which no scenario may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.engine._reference.jsonlogic_operators import OPERATORS

if TYPE_CHECKING:
    from random import Random


NAMES = ("", "a", "b", "1", "é", "😀", "\ufb33", "odd key")
PATHS = (
    *NAMES,
    *(
        "a.b",
        "a.0",
        "a[0]",
        'a["odd key"]',
        "a[",
        "[0]",
        ".",
        "a..b",
        "00",
        "current",
        "accumulator",
        "accumulator.a",
    ),
)
NUMBER_LIKE = (
    "0",
    " 2 ",
    "-0",
    ".5",
    "5.",
    "1e3",
    "1e999",
    "0x1",
    "inf",
    "1_0",
    "\xa01",
    "٣",
    "12",
    "+1",
    "1e-7",
)
_NUMBERS = (0, -0.0, 1, 2, 3, -1, 0.5, 0.1, 1e21, 1e-7, 1.7e308, 5e-324, 2.0**53 - 1, 100, -2.5, 1 / 3)
_SCALARS = (None, True, False, *_NUMBERS, *_NUMBERS, *PATHS, *NUMBER_LIKE)
_OPERATORS = tuple(sorted(OPERATORS))
_FOLDS: tuple[Any, ...] = (
    {"+": [{"var": "current"}, {"var": "accumulator"}]},
    {"cat": [{"var": "accumulator"}, {"var": "accumulator"}, "é"]},
    {"merge": [{"var": "accumulator"}, {"var": "accumulator"}]},
    [{"var": "accumulator"}],
    {"var": ""},
    {"max": [{"var": "current"}, {"var": "accumulator"}]},
)
_LONG = ("y" * 1500, [0] * 70, [[1, 2]] * 40, "é" * 400)


def random_data(random: Random, depth: int = 3) -> Any:
    """A JSON value."""
    kind = random.random()
    if depth == 0 or kind < 0.4:
        return random.choice(_SCALARS)
    if kind < 0.45:
        return random.choice(_LONG)
    if kind < 0.7:
        return [random_data(random, depth - 1) for _ in range(random.randint(0, 4))]
    return {random.choice(NAMES): random_data(random, depth - 1) for _ in range(random.randint(0, 4))}


def random_logic(random: Random, depth: int = 4) -> Any:
    """An expression, or what is none."""
    kind = random.random()
    if depth == 0 or kind < 0.12:
        return random.choice(_SCALARS)
    if kind < 0.27:
        return {"var": random.choice(PATHS)}
    if kind < 0.32:
        return [random_logic(random, depth - 1) for _ in range(random.randint(0, 3))]
    if kind < 0.35:
        return {
            random.choice(("nope", "+", "var", "x" * 50)): random_data(random, 1)
            for _ in range(random.randint(0, 2))
        }
    if kind < 0.40:
        return {
            "reduce": [
                random_logic(random, depth - 1),
                random.choice(_FOLDS),
                random.choice((0, "", [], None)),
            ],
        }
    return {random.choice(_OPERATORS): _operand(random, depth - 1)}


def _operand(random: Random, depth: int) -> Any:
    if random.random() < 0.15:
        return random_logic(random, depth)
    count = random.choice((0, 1, 2, 2, 2, 3, 3, 4))
    return [random_logic(random, depth) for _ in range(count)]
