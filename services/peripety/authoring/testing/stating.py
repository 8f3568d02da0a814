"""Tests in words, from the sentences of a description: limits, prohibitions, duties, examples."""

from __future__ import annotations

import re
from functools import partial
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from peripety.authoring.policies.literals import read
from peripety.authoring.policies.sentences import sentences_of
from peripety.authoring.testing.examples import examples_in
from peripety.authoring.testing.sketches import Sketch, Written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["sketches_of_words"]

_RANGE = re.compile(
    r"(?<![\w.-])(?:(?:between|from)\s+)?(?P<least>-?\d+(?:\.\d+)?)\s*(?:to|and|through|\N{EN DASH}|-)\s*"
    r"(?P<most>-?\d+(?:\.\d+)?)(?![\w-])",
    re.IGNORECASE,
)
_NAMED_LIMIT = re.compile(
    r"\b(?P<kind>max(?:imum)?|min(?:imum)?|limit(?:ed)?)\b(?:\s+\w+){0,2}?"
    r"\s+(?:of\s+|is\s+|to\s+)?(?P<number>\d+(?:\.\d+)?)\b",
    re.IGNORECASE,
)
_NEVER = re.compile(
    r"\b(?:never|must not|may not|cannot|can't|mustn't|do not|does not|don't|forbidden|not allowed|only|"
    r"nobody|no one|without|unless|except)\b",
    re.IGNORECASE,
)
_MUST = re.compile(
    r"\b(?:must|has to|have to|shall|should|always|need(?:s|ed)? to|is to|are to|required|exactly)\b",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"^(?:if|when|whenever|where|once|after)\s+(?P<case>[^,]{3,300}),\s*(?:then\s+)?(?P<then>.{3,})$"
    r"|^(?P<then2>[^,]{3,300}?),?\s+(?:if|when|whenever)\s+(?P<case2>.{3,})$",
    re.IGNORECASE | re.DOTALL,
)
_CODE = re.compile(r"`([^`\n]{1,120})`")
_NUMBER = re.compile(r"\d")
_LONGEST = 300
_MOST_PAIRS = 6
_SURE, _LIKELY, _UNSURE = 0.8, 0.65, 0.4


def sketches_of_words(
    task: str, environment: Mapping[str, Any], categories: Sequence[str]
) -> Iterator[Sketch]:
    """Yield tests in words, by descending confidence; a sentence without a checkable statement yields none.

    Args:
        task: the description.
        environment: optionally with `prohibited_tools`.
        categories: all test categories.
    """
    sentences = [sentence[:_LONGEST] for sentence in sentences_of(task)]
    for number, example in enumerate(examples_in(task)):
        if example.out is not None:
            kinds = ("correctness", "anti_cheat") if number % 2 else ("correctness", "existence")
            why = "An example of the description does not hold."
            confidence = _SURE if example.is_quoted else _UNSURE
            yield _sketch(example.given, example.out or "nothing", why, confidence, *kinds)
    for tool in environment.get("prohibited_tools", ()):
        why = "A prohibited tool is used."
        yield _sketch(f"Look for any use of {tool}", "No use of it.", why, _SURE, "anti_cheat")
    for sentence in sentences:
        yield from _of_limits(sentence)
        yield from _of_duties(sentence)
    stating = [one for one in sentences if _MUST.search(one) or _NEVER.search(one) or _NUMBER.search(one)]
    if "integration" in categories:
        for one, other in islice(pairwise(stating), _MOST_PAIRS):
            given = f"One after the other: {_short(one)} Then: {_short(other)}"
            yield _sketch(given, "Both hold.", "One breaks the other.", _UNSURE, "integration")


def _of_limits(sentence: str) -> Iterator[Sketch]:
    """Yield tests at and around each numeric limit of a sentence."""
    rest = sentence
    for found in _RANGE.finditer(sentence):
        rest = rest.replace(found[0], " ")
        least, most = _number(found["least"]), _number(found["most"])
        if least < most:
            yield from _around(sentence, ">=", least, found[0])
            yield from _around(sentence, "<=", most, found[0])
    for found in _NAMED_LIMIT.finditer(rest):
        operator = ">=" if found["kind"].lower().startswith("min") else "<="
        yield from _around(sentence, operator, _number(found["number"]), found[0])
        rest = rest.replace(found[0], " ")
    stated = read(rest)
    while stated.bound is not None:
        bound = stated.bound
        yield from _around(sentence, bound.operator, bound.number, f"{bound.operator} {bound.number:g}")
        stated = read(stated.text)


def _around(sentence: str, operator: str, number: float, limit: str) -> Iterator[Sketch]:
    step = 1 if float(number).is_integer() else 0.1
    why = "The limit is off by one."
    for value in (number - step, number, number + step):
        holds = {"<=": value <= number, "<": value < number, ">=": value >= number, ">": value > number}
        verdict = "meets" if holds[operator] else "does not meet"
        told = f"{value:g}"
        given = f"Exactly {told}, given the limit: {_short(sentence)}"
        yield _sketch(given, f"{told} {verdict} the limit ({limit.strip()}).", why, _LIKELY, "boundary")


def _of_duties(sentence: str) -> Iterator[Sketch]:
    """Yield tests of required, forbidden and conditional behaviour."""
    case = _WHEN.match(sentence)
    if case:
        given, then = case["case"] or case["case2"], case["then"] or case["then2"]
        why = "The consequence is missing."
        yield _sketch(given.strip().rstrip("."), then.strip(), why, _SURE, "correctness", "integration")
    if _NEVER.search(sentence):
        why = "A prohibition is violated."
        given = f"Try to get around: {sentence}"
        yield _sketch(given, f"It still holds: {sentence}", why, _LIKELY, "correctness", "anti_cheat")
    elif not case and _MUST.search(sentence):
        why = "A required behaviour is missing."
        yield _sketch(f"A usual case of: {sentence}", sentence, why, _LIKELY, "correctness")
    for name in _CODE.findall(sentence):
        why = "It is missing, or has another name."
        yield _sketch(f"Look for {name}", f"It is there: {sentence}", why, _LIKELY, "existence")


def _sketch(given: str, expected: str, why: str, confidence: float, *fits: str) -> Sketch:
    name = re.sub(r"[^a-z0-9]+", "_", given.lower()).strip("_") or "case"
    written = partial(Written, name, why, expected, None, confidence)
    return Sketch(given, frozenset(fits), frozenset({given}), written)


def _number(text: str) -> float:
    return float(text)


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= _LONGEST // 2 else f"{sentence[: _LONGEST // 2]}…"
