"""Model answers corrupted in the ways models corrupt them."""

from __future__ import annotations

import json
import re
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def begins(shown: Any, whole: Any) -> bool:
    """Return True if a whole value contains everything that was shown of it."""
    if isinstance(shown, dict) and isinstance(whole, dict):
        return all(key in whole and begins(value, whole[key]) for key, value in shown.items())
    if isinstance(shown, list) and isinstance(whole, list):
        return len(shown) <= len(whole) and all(map(begins, shown, whole))
    return bool(shown == whole)


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
        ["Sure - ", "\ufeff", "A smile :[ and then ", "It's [1] what {you} asked for: ", "<answer>"],
    )
    return (
        before + text + random.choice(["", " Anything else?", "\n\nSee [2], or don't.", "</answer>", " :]"])
    )


def with_trailing_commas(random: Random, text: str) -> str:
    return outside_strings(
        r"(?<=[^\s\[{])\s*[}\]]",
        lambda m: "," + m[0] if random.random() < 0.7 else m[0],
        text,
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


def cut_at_a_byte(random: Random, text: str) -> str:
    data = text.encode(errors="surrogatepass")
    return data[: random.randrange(len(data))].decode(errors="replace")


def with_a_huge_number(random: Random, text: str) -> str:
    spoilt = random.choice([str(2**53), "-" + "9" * 400, "9" * 5000, "1e400", "-1E+9999"])
    return outside_strings(r"(?<=\"count\": )\d+", lambda _: spoilt, text)


def with_deep_nesting(random: Random, text: str) -> str:
    depth = random.choice([70, 300, 1_000])
    deep = "[" * depth + "]" * depth
    return outside_strings(r"(?<=\"count\": )\d+", lambda _: deep, text)


def with_a_lone_surrogate(random: Random, text: str) -> str:
    return text.replace('"name": "', '"name": "' + random.choice(["\\ud83d", "\\udc00 ", "\ud83d"]), 1)


def as_two_documents(random: Random, text: str) -> str:
    other = written(random, answer(random))
    return f"{other}{random.choice(['', ' ', chr(10), ' or rather '])}{text}"


def with_byte_order_marks(_random: Random, text: str) -> str:
    return f"\ufeff{text}\ufeff"


WHOLE = [in_a_fence, in_prose, with_byte_order_marks]
MANNERS = [
    with_trailing_commas,
    with_comments,
    as_python,
    with_python_literals,
    with_bare_keys,
    with_raw_line_breaks,
]
BEYOND_REPAIR = [
    cut_off,
    with_a_huge_number,
    with_deep_nesting,
    with_nan,
    with_a_repeated_key,
    with_a_wrong_type,
    with_another_top_level,
]
ANYTHING = [
    without_a_character,
    with_a_stray_character,
    with_quotes_unescaped,
    without_commas,
    cut_at_a_byte,
    with_a_lone_surrogate,
    as_two_documents,
]


def corpus(seeds: int) -> Iterator[tuple[str, str]]:
    """So many spoilt answers of every kind, each with what was done to it; half of them were spoilt twice."""
    for spoil in (*WHOLE, *MANNERS, *BEYOND_REPAIR, *ANYTHING):
        for seed in range(seeds):
            random = Random(f"{spoil.__name__} {seed}")
            name, text = f"{seed}: {spoil.__name__}", spoil(random, written(random, answer(random)))
            if text and random.random() < 0.5:
                again = random.choice([*WHOLE, *ANYTHING])
                name, text = f"{name}, {again.__name__}", again(random, text)
            yield name, text
