"""Answers as models spoil them: whatever was done to one, there is a valid value or a reason."""

from __future__ import annotations

import json
import re
from random import Random
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from peripety.errors import InvalidArgumentError
from peripety.gateway.structured import parse_json_with_schema

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer", "minimum": 0},
        "ratio": {"type": "number"},
        "open": {"type": "boolean"},
        "note": {"type": ["string", "null"]},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "key": {"type": "string"},
                    "parts": {"type": "array", "items": {"type": "number"}},
                },
                "required": ["key"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["name", "count", "items"],
    "additionalProperties": False,
}
ORACLE = jsonschema.Draft202012Validator(SCHEMA)
WORDS = [
    "alpha",
    "béta",
    "it's",
    '"quoted"',
    "a, b: c",
    "{braces}",
    "[1]",
    "// no comment",
    "#1",
    "line\nbreak",
    "tab\t",
    "back\\slash\\",
    "```",
    "None",
    "😀\u2028",
    "/* */",
    "",
    " padded ",
    "True",
    "',",
    '",',
]
SEEDS = range(400)


def text_of(random: Random) -> str:
    return " ".join(random.choices(WORDS, k=random.randint(0, 3)))


def answer(random: Random) -> dict[str, Any]:
    value: dict[str, Any] = {
        "name": text_of(random),
        "count": random.randint(0, 999),
        "ratio": random.choice([0.5, -2, 1e-7, 3]),
        "open": random.random() < 0.5,
        "note": random.choice([None, text_of(random)]),
        "items": [
            {"key": text_of(random), "parts": [random.randint(-9, 9) for _ in range(random.randint(0, 3))]}
            for _ in range(random.randint(0, 3))
        ],
    }
    for key in ("ratio", "open", "note"):
        if random.random() < 0.3:
            del value[key]
    return value


def written(random: Random, value: Any) -> str:
    return json.dumps(value, indent=random.choice([None, 1, 2]), ensure_ascii=random.random() < 0.5)


def outside_strings(pattern: str, change: Callable[[re.Match[str]], str], text: str) -> str:
    """Change what a pattern matches in JSON, but nothing inside of its strings."""
    whole = re.compile(rf'"(?:[^"\\]|\\.)*"|(?P<found>{pattern})')
    return whole.sub(lambda match: change(match) if match["found"] is not None else match[0], text)


def in_a_fence(random: Random, text: str) -> str:
    fence = random.choice(["```", "```json", "```JSON5", "~~~", "``` json"])
    close = random.choice([fence[:3], ""])
    return (
        f"{random.choice(['', 'Here it is:', 'Of course! (see {x} and [note])'])}\n{fence}\n{text}\n{close}"
    )


def in_prose(random: Random, text: str) -> str:
    before = random.choice(
        ["Sure - ", "\ufeff", "A smile :[ and then ", "It's [1] what {you} asked for: ", "<answer>"]
    )
    return (
        before + text + random.choice(["", " Anything else?", "\n\nSee [2], or don't.", "</answer>", " :]"])
    )


def with_trailing_commas(random: Random, text: str) -> str:
    return outside_strings(
        r"(?<=[^\s\[{])\s*[}\]]", lambda m: "," + m[0] if random.random() < 0.7 else m[0], text
    )


def with_comments(random: Random, text: str) -> str:
    comments = ['/* it\'s "so" { */', "// so ]\n", "# so, 'it' is\n", " /**/ "]
    return outside_strings("[,:]", lambda m: m[0] + random.choice([*comments, ""]), text)


def as_python(_random: Random, text: str) -> str:
    return repr(json.loads(text))


def with_python_literals(_random: Random, text: str) -> str:
    names = {"true": "True", "false": "False", "null": "None"}
    return outside_strings("true|false|null", lambda m: names[m[0]], text)


def with_bare_keys(_random: Random, text: str) -> str:
    return re.sub(r'"(name|count|ratio|open|note|items|key|parts)":', r"\1:", text)


def with_raw_line_breaks(_random: Random, text: str) -> str:
    return re.sub(r"(?<!\\)((?:\\\\)*)\\(n|t)", lambda m: m[1] + {"n": "\n", "t": "\t"}[m[2]], text)


def cut_off(random: Random, text: str) -> str:
    return text[: random.randrange(len(text) - 1) + 1].rstrip() if len(text) > 1 else ""


def with_nan(random: Random, text: str) -> str:
    spoilt = random.choice(["NaN", "Infinity", "-Infinity", "1e999"])
    return outside_strings(r"(?<=\"count\": )\d+", lambda _: spoilt, text)


def with_a_repeated_key(random: Random, text: str) -> str:
    return text.replace("{", random.choice(['{"count": 1, ', "{'count': 7, "]), 1)


def with_a_wrong_type(random: Random, text: str) -> str:
    spoilt = random.choice(['"7"', "[7]", "{}", "null", "7.5", "-7", "true"])
    return outside_strings(r"(?<=\"count\": )\d+", lambda _: spoilt, text)


def with_another_top_level(random: Random, text: str) -> str:
    return random.choice([f"[{text}]", json.dumps(text), f'{{"answer": {text}}}', "null", "7"])


def without_a_character(random: Random, text: str) -> str:
    place = random.randrange(len(text))
    return text[:place] + text[place + 1 :]


def with_a_stray_character(random: Random, text: str) -> str:
    place = random.randrange(len(text) + 1)
    return text[:place] + random.choice("{}[]\",:'\\/#x1-`\n\x00\ufeff") + text[place:]


def with_quotes_unescaped(_random: Random, text: str) -> str:
    return text.replace('\\"', '"')


def without_commas(random: Random, text: str) -> str:
    return outside_strings(",", lambda _: random.choice([",", " "]), text)


WHOLE = [in_a_fence, in_prose]
MANNERS = [
    with_trailing_commas,
    with_comments,
    as_python,
    with_python_literals,
    with_bare_keys,
    with_raw_line_breaks,
]
BEYOND_REPAIR = [cut_off, with_nan, with_a_repeated_key, with_a_wrong_type, with_another_top_level]
ANYTHING = [without_a_character, with_a_stray_character, with_quotes_unescaped, without_commas]


def refusal(text: str) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_json_with_schema(text, SCHEMA)
    assert caught.value.code in {"NOT_JSON", "SCHEMA_MISMATCH"}
    assert all(violation.field.startswith("/") for violation in caught.value.violations)
    assert caught.value.violations
    return caught.value


@pytest.mark.parametrize("spoil", [*WHOLE, *MANNERS], ids=lambda spoil: spoil.__name__)
def test_what_is_only_wrapped_or_badly_mannered_comes_back_equal(
    spoil: Callable[[Random, str], str],
) -> None:
    for seed in SEEDS:
        random = Random(seed)
        value = answer(random)
        text = spoil(random, written(random, value))
        assert parse_json_with_schema(text, SCHEMA) == value, text
        wrapped = in_prose(random, in_a_fence(random, text))
        assert parse_json_with_schema(wrapped, SCHEMA) == value, wrapped


@pytest.mark.parametrize("spoil", BEYOND_REPAIR, ids=lambda spoil: spoil.__name__)
def test_what_no_reading_makes_valid_is_refused_with_the_reason(spoil: Callable[[Random, str], str]) -> None:
    for seed in SEEDS:
        random = Random(seed)
        text = written(random, answer(random))
        refusal(spoil(random, text))


@pytest.mark.parametrize("manners", MANNERS, ids=lambda spoil: spoil.__name__)
def test_an_answer_that_was_cut_off_is_never_completed(manners: Callable[[Random, str], str]) -> None:
    for seed in SEEDS:
        random = Random(seed)
        text = manners(random, written(random, answer(random))).rstrip()
        refusal(cut_off(random, text))


@pytest.mark.parametrize("spoil", ANYTHING, ids=lambda spoil: spoil.__name__)
def test_whatever_else_was_done_there_is_a_valid_value_or_a_reason(
    spoil: Callable[[Random, str], str],
) -> None:
    for seed in SEEDS:
        random = Random(seed)
        text = spoil(random, random.choice(MANNERS)(random, written(random, answer(random))))
        try:
            value = parse_json_with_schema(text, SCHEMA)
        except InvalidArgumentError:
            refusal(text)
        else:
            ORACLE.validate(value)
