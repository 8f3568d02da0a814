"""Answers with tests in them, as models write them, and what is to be read out of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

__all__ = ["WrittenTests", "as_json", "random_test", "written_tests"]

_TEXTS = (
    "a",
    'says "b"',
    "back\\slash",
    "{not [an] object}",
    "é\u2028\u00a0ß",
    "\U0001f600\U0001f3fd",
    "\ud7ff\ue000",
    "line\nbreak\ttab",
    "]}",
    "",
    "null",
)
_PROSE = ("", "Here they are:\n", "First [sic] a word, then {some} more.\n```json\n", "\ufeff\n\n")


@dataclass(frozen=True)
class WrittenTests:
    """Tests in a text.

    Attributes:
        text: the text.
        values: the tests that are whole in it.
        ends: for each of them, how long the text is up to its last bracket.
    """

    text: str
    values: tuple[dict[str, Any], ...]
    ends: tuple[int, ...]


def random_test(random: Random) -> dict[str, Any]:
    """A test that a model might write."""
    value: dict[str, Any] = {
        "id": f"t{random.randrange(100)}",
        "input": _text(random) + "x",
        "expected_output": random.choice((None, _text(random))),
        "reasoning": _text(random),
        "confidence": random.choice((0, 1, 0.25, 0.9)),
    }
    if random.random() < 0.5:
        value["body"] = {
            "steps": [{_text(random) or "k": [_text(random), random.randrange(-5, 5), None, True]}],
            "nested": {"deep": {"er": [[], {}, [{}]]}},
        }
    return value


def as_json(random: Random, value: Any) -> str:
    """A value in one of the ways in which it can be written."""
    indent = random.choice((None, None, 1, 4))
    return json.dumps(value, ensure_ascii=random.random() < 0.5, indent=indent)


def written_tests(random: Random, values: list[dict[str, Any]], *, whole: int | None = None) -> WrittenTests:
    """A list of tests, with prose around it.

    Args:
        random: decides about spaces, escapes and prose.
        values: the tests.
        whole: how many of them are whole, when the answer was cut off behind them; None for all.
    """
    kept = values if whole is None else values[:whole]
    text = random.choice(_PROSE) + random.choice(('{"tests": [', '{ "tests" :\n[ ', "[", "[\n  "))
    is_object = "{" in text[-16:] and "tests" in text[-16:]
    ends = []
    for number, value in enumerate(kept):
        text += (", " if number else "") + as_json(random, value)
        ends.append(len(text))
    if whole is None:
        text += "]" + ("}" if is_object else "") + random.choice(("", "\n```", "\nThat is all."))
    elif len(values) > whole:
        rest = as_json(random, values[whole])
        text += (", " if kept else "") + rest[: random.randrange(1, len(rest))]
    return WrittenTests(text, tuple(kept), tuple(ends))


def _text(random: Random) -> str:
    return "".join(random.choice(_TEXTS) for _ in range(random.randrange(4)))
