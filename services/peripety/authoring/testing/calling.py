"""Tests of a command without running it: from examples in its description and from its source."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.authoring.policies.sentences import sentences_of
from peripety.authoring.testing.examples import Example, examples_in, exit_code_in
from peripety.authoring.testing.sketches import Sketch, Written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["sketches_of_command"]

_PIPED = re.compile(
    r"(?:echo|printf)\s++(?P<flag>-n\s++|-e\s++)?+(?P<text>[^|]++)\|\s*+(?P<call>.+)", re.DOTALL
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NO_CALL = frozenset(
    {
        *("a", "an", "and", "any", "as", "be", "by", "each", "every", "for", "given", "if", "in", "is", "it"),
        *("must", "of", "on", "or", "program", "script", "should", "tool", "command", "that", "the", "then"),
        *("this", "to", "what", "when", "where", "which", "with"),
    }
)
_STATED = 0.95
_BY_PLACE = 0.7
_DERIVED = 0.6
_BY_LIBRARY = 0.8


@dataclass(frozen=True)
class _Run:
    """Run of the command, with its expected result."""

    arguments: tuple[str, ...]
    stdin: str = ""
    out: str | None = None
    exit_code: int | None = None
    confidence: float = _STATED
    why: str = "The description states it."
    fits: frozenset[str] = frozenset({"correctness"})


def sketches_of_command(
    task: str, subject: Mapping[str, Any], environment: Mapping[str, Any]
) -> Iterator[Sketch]:
    """Yield tests of a command, stated examples first; every expectation is either stated or certain.

    Args:
        task: the description.
        subject: `command`, and optionally its `source`.
        environment: its `files` may also contain examples.
    """
    source = str((subject.get("source") or {}).get("text", ""))
    texts = [task, *_documents(environment), *_docstrings(source)]
    known = {*re.findall(r"[\"']([^\"'\s]{1,60})[\"']", source)}
    stated = [run for text in texts for run in _stated(text, subject["command"], known)]
    derived = [run for text in texts for run in _refused(text, stated)]
    seen: set[str] = set()
    for run in (*stated, *derived, *_by_library(source)):
        sketch = _sketch(run)
        if sketch.given not in seen:
            seen.add(sketch.given)
            yield sketch


def _documents(environment: Mapping[str, Any]) -> Iterator[str]:
    """Yield the documentation files."""
    for file in environment.get("files", ()):
        if PurePath(file["path"]).suffix.lower() in {".md", ".rst", ".txt"}:
            yield str(file.get("preview", ""))


def _docstrings(source: str) -> Iterator[str]:
    yield from re.findall(r'"""(.*?)"""', source, re.DOTALL)


def _stated(text: str, command: Sequence[str], known: set[str]) -> Iterator[_Run]:
    number = 0
    for example in examples_in(text):
        call = _call(example, command, known)
        if call is None:
            continue
        arguments, stdin = call
        fits = (
            {"existence"} if number == 0 else {"correctness", *(("anti_cheat",) if number % 2 == 0 else ())}
        )
        if example.exit_code:
            fits = {"boundary"}
        confidence = _STATED if example.is_quoted else _BY_PLACE
        yield _Run(arguments, stdin, example.out, example.exit_code, confidence, fits=frozenset(fits))
        number += 1


def _call(example: Example, command: Sequence[str], known: set[str]) -> tuple[tuple[str, ...], str] | None:
    """Return the arguments and the input of an example; None if it does not call the command."""
    if example.is_input:
        return ((), f"{_plain(example.given)}\n") if example.is_quoted else None
    piped = _PIPED.fullmatch(example.given.removeprefix("$ "))
    words = _words(piped["call"] if piped else example.given)
    if words is None:
        return None
    rest = _without_command(words, command)
    if len(rest) == len(words) and not example.is_quoted:
        # An unquoted text before "prints" counts as a call only if it looks like one.
        is_call = bool(words) and not _NO_CALL & {word.lower() for word in words}
        if not is_call or not (words[0] in known or any(map(_NUMBER.fullmatch, words))):
            return None
    if not piped:
        return tuple(rest), ""
    given = _words(piped["text"])
    if given is None:
        return None
    end = "" if piped["flag"] and "n" in piped["flag"] else "\n"
    return tuple(rest), f"{_plain(' '.join(given))}{end}"


def _words(text: str) -> list[str] | None:
    if set(text) & {"|", ">", "<", "&", "$"}:
        return None
    try:
        return shlex.split(text)
    except ValueError:
        return None


def _plain(text: str) -> str:
    """Return the text with escaped line ends replaced."""
    return text.replace("\\n", "\n").replace("\\t", "\t")


def _without_command(words: Sequence[str], command: Sequence[str]) -> list[str]:
    """Return the words without the command itself."""
    names = {name for part in command for name in (part, PurePath(part).name, PurePath(part).stem) if name}
    names |= {f"./{PurePath(part).name}" for part in command} | {"python", "python3"}
    rest = [*words]
    while rest and rest[0] in names and len(words) - len(rest) < len(command) + 1:
        rest.pop(0)
    return rest


def _refused(text: str, stated: Sequence[_Run]) -> Iterator[_Run]:
    """Yield invalid calls whose exit code is stated by a sentence."""
    calls = [one.arguments for one in stated if one.arguments and not one.exit_code]
    for sentence in sentences_of(text):
        code = exit_code_in(sentence)
        for said, confidence, wrong in _WRONG if code is not None else ():
            if said.search(sentence):
                why = f"From the description: {sentence[:200]}"
                fits = frozenset({"boundary"})
                for call in wrong(calls, sentence.lower()):
                    yield _Run(call, "", None, code, confidence, why, fits)


def _replaced(call: Sequence[str], value: str) -> tuple[str, ...]:
    """Return the call with another value for its last number."""
    for index in reversed(range(len(call))):
        if _NUMBER.fullmatch(call[index]):
            return (*call[:index], value, *call[index + 1 :])
    return tuple(call)


def _said(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})", re.IGNORECASE)


def _short_of_one(calls: _Calls, _: str) -> _Calls:
    return [call[:-1] for call in calls[:2] if len(call) > 1]


def _with_no_number(calls: _Calls, _: str) -> _Calls:
    return [spoiled for call in calls[:2] if (spoiled := _replaced(call, "x")) != call]


def _with_zero(calls: _Calls, sentence: str) -> _Calls:
    """Return a call with a zero, for an operation in the sentence; others may accept zero."""
    return [_replaced(call, "0") for call in calls if call[0].lower()[:3] in sentence][:1]


_Calls: TypeAlias = "Sequence[tuple[str, ...]]"
_WRONG: tuple[tuple[re.Pattern[str], float, Callable[[_Calls, str], _Calls]], ...] = (
    (_said(r"(?:no|without(?: any)?|zero)\s+arguments?\b"), _STATED, lambda _calls, _: [()]),
    (
        _said(r"unknown\s+(?:sub)?(?:command|operation|operator|action|verb)"),
        _BY_LIBRARY,
        lambda calls, _: [("no-such-command", *(calls[0][1:] if calls else ()))],
    ),
    (_said(r"unknown\s+(?:option|flag)"), _BY_LIBRARY, lambda _calls, _: [("--no-such-option",)]),
    (
        _said(r"(?:missing|too few)\s+\w*\s?(?:arguments?|operands?|numbers?|values?|parameters?)"),
        _DERIVED,
        _short_of_one,
    ),
    (
        _said(r"(?:superfluous|too many|extra)\s+(?:arguments?|operands?)"),
        _DERIVED,
        lambda calls, _: [(*call, "1") for call in calls[:1]],
    ),
    (
        _said(r"not (?:a|an|numeric)\b", "non-?numeric", r"no (?:number|integer)s?\b", "invalid number"),
        _DERIVED,
        _with_no_number,
    ),
    (_said(r"(?:by|of) (?:zero|0)\b"), _DERIVED, _with_zero),
)
"""Patterns for invalid calls, each with a confidence and a builder of such calls."""


def _by_library(source: str) -> Iterator[_Run]:
    """Yield the exit codes that are certain for a program that uses argparse."""
    if "argparse" not in source or ".parse_args(" not in source or "exit_on_error=False" in source:
        return
    why = "Its argument parser exits this way."
    boundary = frozenset({"boundary"})
    if "add_help=False" not in source:
        fits = frozenset({"existence"})
        yield _Run(("--help",), "", None, 0, _BY_LIBRARY, why, fits)
    yield _Run(("--no-such-option",), "", None, 2, _BY_LIBRARY, why, boundary)
    if re.search(r"add_argument\(\s*[\"'][A-Za-z][\w-]*[\"'](?![^)]*nargs)", source):
        yield _Run((), "", None, 2, _BY_LIBRARY, why, boundary)


def _sketch(run: _Run) -> Sketch:
    given = shlex.join(run.arguments) or "no arguments"
    if run.stdin:
        given += f" with {json.dumps(run.stdin, ensure_ascii=False)} on standard input"
    return Sketch(given, run.fits, frozenset({given}), partial(_written, run))


def _written(run: _Run) -> Written:
    name = re.sub(r"[^a-z0-9]+", "_", " ".join(run.arguments).lower()).strip("_") or "nothing"
    body = {"arguments": [*run.arguments], "stdin": run.stdin, "exit_code": run.exit_code}
    return Written(name, run.why, run.out, body, run.confidence)
