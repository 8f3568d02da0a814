"""Command tests: from examples in a description and from source code, without running the command.

A description also gives tests in words, from sentences with limits, prohibitions, duties and examples.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.author.policy_author.sentences import split_sentences
from peripety.author.policy_author.tokens import find_bounds
from peripety.author.test_author.candidates import Candidate, CandidateDetails

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


_COMES_OUT = r"(?:prints?|writes?|outputs?|shows?|returns?|gives?|yields?|answers?|->|=>|→|⇒|becomes?)"
_QUOTED = r"`[^`\n]{1,400}`|\"[^\"\n]{0,400}\"|“[^”\n]{0,400}”"
_STATED_EXAMPLE = re.compile(
    rf"(?P<call>{_QUOTED}|(?:(?<=[\s,;:(])|^)[^\s`\"“,;:()][^`\"“,;:()\n]{{0,200}}?)"
    rf"(?P<on>\s+(?:on|from|as|via)\s+(?:its\s+|the\s+)?(?:standard\s+input|stdin))?"
    rf"\s+(?:must\s+|should\s+|has\s+to\s+|it\s+)?{_COMES_OUT}\s+"
    rf"(?P<out>{_QUOTED}|[^`\"“,;\n]{{1,200}}?)(?=[,;)\n]|\.(?:\s|$)|\s+and\s|\s*$)",
    re.IGNORECASE | re.MULTILINE,
)
_EXITS = re.compile(
    r"\bexits?(?:\s+(?:with|by))?(?:\s+(?:the|a|an))?(?:\s+(?:exit\s+)?(?:code|status))?(?:\s+(?:is|of))?\s+(\d{1,3})\b"
    r"|\b(?:exit|return)\s+(?:code|status)(?:\s+(?:is|of|must\s+be))?\s+(\d{1,3})\b",
    re.IGNORECASE,
)
_PROMPT = re.compile(r"^\s*(?:\$|>)\s+(?P<call>\S.*)$")
_LEADING = re.compile(r"^(?:for example|for instance|so|and|then|e\.g\.|that is|example)\s+", re.IGNORECASE)
_NOT_EXACT = re.compile(
    r"(?:a|an|the|its|their|his|her|all|each|every|any|some|one|how|what|which|whether|only|to|an?other|"
    r"exactly one|nothing else|as|in|on|out|up|back|it|them|that|this|no)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class StatedExample:
    """Example of a run.

    Attributes:
        input_text: the input.
        out: the exact output; None if unspecified.
        exit_code: the exit code; None if unspecified.
        is_quoted: True if the input is quoted in the text, not only inferred from its position.
        is_input: True if the input is read from standard input.
    """

    input_text: str
    out: str | None
    exit_code: int | None = None
    is_quoted: bool = True
    is_input: bool = False


def find_examples(text: str) -> list[StatedExample]:
    """Return the examples in a text, in order, without duplicates."""
    return [*dict.fromkeys([*_find_stated(text), *_find_exits(text), *_find_session(text)])]


def find_exit_code(text: str) -> int | None:
    """Return the exit code in a text; None without one."""
    found = _EXITS.search(text)
    return int(found[1] or found[2]) if found else None


def _find_stated(text: str) -> Iterator[StatedExample]:
    for found in _STATED_EXAMPLE.finditer(text):
        given, is_quoted = _unquote(found["call"])
        out, is_exact = _unquote(found["out"].strip())
        if not is_exact:
            if out.lower() == "nothing":
                out = ""
            elif _NOT_EXACT.match(out):
                continue
        rest = text[found.end() : found.end() + 80]
        ends = re.match(rf"\s*,?\s*and\s+(?={_EXITS.pattern})", rest, re.IGNORECASE)
        code = find_exit_code(rest[: rest.find("\n")] if "\n" in rest else rest) if ends else None
        yield StatedExample(given, out, code, is_quoted, found["on"] is not None)


def _find_exits(text: str) -> Iterator[StatedExample]:
    """Yield the calls with a stated exit code and an unspecified output."""
    for found in re.finditer(rf"(?P<call>{_QUOTED})\s+(?={_EXITS.pattern})", text, re.IGNORECASE):
        yield StatedExample(_unquote(found["call"])[0], None, find_exit_code(text[found.end() :]))


def _find_session(text: str) -> Iterator[StatedExample]:
    """Yield the calls after a shell prompt, with the lines below as output."""
    call: str | None = None
    out: list[str] = []
    for line in [*text.splitlines(), "$ "]:
        found = _PROMPT.match(line)
        if (found or not line.strip() or line.strip().startswith("```") or line == "$ ") and call is not None:
            if out:
                yield StatedExample(call, "\n".join(out))
            call, out = None, []
        elif call is not None:
            out.append(line.strip())
        if found:
            call, out = found["call"].strip(), []


def _unquote(text: str) -> tuple[str, bool]:
    """Return the text without quotes, and whether it was quoted."""
    text = text.strip()
    if len(text) > 1 and text[0] in '`"“':
        return text[1:-1], True
    return _LEADING.sub("", text), False


_PIPED = re.compile(
    r"(?:echo|printf)\s++(?P<flag>-n\s++|-e\s++)?+(?P<text>[^|]++)\|\s*+(?P<call>.+)",
    re.DOTALL,
)
_NUMBER_ARGUMENT = re.compile(r"-?\d+(?:\.\d+)?")
_NO_CALL = frozenset(
    {
        *("a", "an", "and", "any", "as", "be", "by", "each", "every", "for", "given", "if", "in", "is", "it"),
        *("must", "of", "on", "or", "program", "script", "should", "tool", "command", "that", "the", "then"),
        *("this", "to", "what", "when", "where", "which", "with"),
    },
)
_STATED_CONFIDENCE = 0.95
_INFERRED_CONFIDENCE = 0.7
_DERIVED_CONFIDENCE = 0.6
_LIBRARY_CONFIDENCE = 0.8


@dataclass(frozen=True)
class _ExpectedRun:
    """Run of the command, with its expected result."""

    arguments: tuple[str, ...]
    stdin: str = ""
    out: str | None = None
    exit_code: int | None = None
    confidence: float = _STATED_CONFIDENCE
    why: str = "The description states it."
    fits: frozenset[str] = frozenset({"correctness"})


def command_candidates(
    task: str,
    subject: Mapping[str, Any],
    environment: Mapping[str, Any],
) -> Iterator[Candidate]:
    """Yield tests of a command, stated examples first; every expectation is either stated or certain.

    Args:
        task: the description.
        subject: `command`, and optionally its `source`.
        environment: its `files` may also contain examples.
    """
    source = str((subject.get("source") or {}).get("text", ""))
    texts = [task, *_iter_documents(environment), *_find_docstrings(source)]
    known = {*re.findall(r"[\"']([^\"'\s]{1,60})[\"']", source)}
    stated = [run for text in texts for run in _stated_runs(text, subject["command"], known)]
    derived = [run for text in texts for run in _rejected_runs(text, stated)]
    seen: set[str] = set()
    for run in (*stated, *derived, *_argparse_runs(source)):
        sketch = _run_candidate(run)
        if sketch.input_text not in seen:
            seen.add(sketch.input_text)
            yield sketch


def _iter_documents(environment: Mapping[str, Any]) -> Iterator[str]:
    """Yield the documentation files."""
    for file in environment.get("files", ()):
        if PurePath(file["path"]).suffix.lower() in {".md", ".rst", ".txt"}:
            yield str(file.get("preview", ""))


def _find_docstrings(source: str) -> Iterator[str]:
    yield from re.findall(r'"""(.*?)"""', source, re.DOTALL)


def _stated_runs(text: str, command: Sequence[str], known: set[str]) -> Iterator[_ExpectedRun]:
    number = 0
    for example in find_examples(text):
        call = _parse_call(example, command, known)
        if call is None:
            continue
        arguments, stdin = call
        fits = (
            {"existence"} if number == 0 else {"correctness", *(("anti_cheat",) if number % 2 == 0 else ())}
        )
        if example.exit_code:
            fits = {"boundary"}
        confidence = _STATED_CONFIDENCE if example.is_quoted else _INFERRED_CONFIDENCE
        yield _ExpectedRun(arguments, stdin, example.out, example.exit_code, confidence, fits=frozenset(fits))
        number += 1


def _parse_call(
    example: StatedExample,
    command: Sequence[str],
    known: set[str],
) -> tuple[tuple[str, ...], str] | None:
    """Return the arguments and the input of an example; None if it does not call the command."""
    if example.is_input:
        return ((), f"{_unescape_line_ends(example.input_text)}\n") if example.is_quoted else None
    piped = _PIPED.fullmatch(example.input_text.removeprefix("$ "))
    words = _split_words(piped["call"] if piped else example.input_text)
    if words is None:
        return None
    rest = _strip_command(words, command)
    if len(rest) == len(words) and not example.is_quoted:
        # An unquoted text before "prints" counts as a call only if it looks like one.
        is_call = bool(words) and not _NO_CALL & {word.lower() for word in words}
        if not is_call or not (words[0] in known or any(map(_NUMBER_ARGUMENT.fullmatch, words))):
            return None
    if not piped:
        return tuple(rest), ""
    given = _split_words(piped["text"])
    if given is None:
        return None
    end = "" if piped["flag"] and "n" in piped["flag"] else "\n"
    return tuple(rest), f"{_unescape_line_ends(' '.join(given))}{end}"


def _split_words(text: str) -> list[str] | None:
    if set(text) & {"|", ">", "<", "&", "$"}:
        return None
    try:
        return shlex.split(text)
    except ValueError:
        return None


def _unescape_line_ends(text: str) -> str:
    """Return the text with escaped line ends replaced."""
    return text.replace("\\n", "\n").replace("\\t", "\t")


def _strip_command(words: Sequence[str], command: Sequence[str]) -> list[str]:
    """Return the words without the command itself."""
    names = {name for part in command for name in (part, PurePath(part).name, PurePath(part).stem) if name}
    names |= {f"./{PurePath(part).name}" for part in command} | {"python", "python3"}
    rest = [*words]
    while rest and rest[0] in names and len(words) - len(rest) < len(command) + 1:
        rest.pop(0)
    return rest


def _rejected_runs(text: str, stated: Sequence[_ExpectedRun]) -> Iterator[_ExpectedRun]:
    """Yield invalid calls whose exit code is stated by a sentence."""
    calls = [one.arguments for one in stated if one.arguments and not one.exit_code]
    for sentence in split_sentences(text):
        code = find_exit_code(sentence)
        for said, confidence, wrong in _INVALID_CALLS if code is not None else ():
            if said.search(sentence):
                why = f"From the description: {sentence[:200]}"
                fits = frozenset({"boundary"})
                for call in wrong(calls, sentence.lower()):
                    yield _ExpectedRun(call, "", None, code, confidence, why, fits)


def _replace_last_number(call: Sequence[str], value: str) -> tuple[str, ...]:
    """Return the call with another value for its last number."""
    for index in reversed(range(len(call))):
        if _NUMBER_ARGUMENT.fullmatch(call[index]):
            return (*call[:index], value, *call[index + 1 :])
    return tuple(call)


def _phrase_pattern(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})", re.IGNORECASE)


def _drop_last_argument(calls: _Calls, _: str) -> _Calls:
    return [call[:-1] for call in calls[:2] if len(call) > 1]


def _spoil_number(calls: _Calls, _: str) -> _Calls:
    return [spoiled for call in calls[:2] if (spoiled := _replace_last_number(call, "x")) != call]


def _set_zero(calls: _Calls, sentence: str) -> _Calls:
    """Return a call with a zero, for an operation in the sentence; others may accept zero."""
    return [_replace_last_number(call, "0") for call in calls if call[0].lower()[:3] in sentence][:1]


_Calls: TypeAlias = "Sequence[tuple[str, ...]]"
_INVALID_CALLS: tuple[tuple[re.Pattern[str], float, Callable[[_Calls, str], _Calls]], ...] = (
    (
        _phrase_pattern(r"(?:no|without(?: any)?|zero)\s+arguments?\b"),
        _STATED_CONFIDENCE,
        lambda _calls, _: [()],
    ),
    (
        _phrase_pattern(r"unknown\s+(?:sub)?(?:command|operation|operator|action|verb)"),
        _LIBRARY_CONFIDENCE,
        lambda calls, _: [("no-such-command", *(calls[0][1:] if calls else ()))],
    ),
    (
        _phrase_pattern(r"unknown\s+(?:option|flag)"),
        _LIBRARY_CONFIDENCE,
        lambda _calls, _: [("--no-such-option",)],
    ),
    (
        _phrase_pattern(r"(?:missing|too few)\s+\w*\s?(?:arguments?|operands?|numbers?|values?|parameters?)"),
        _DERIVED_CONFIDENCE,
        _drop_last_argument,
    ),
    (
        _phrase_pattern(r"(?:superfluous|too many|extra)\s+(?:arguments?|operands?)"),
        _DERIVED_CONFIDENCE,
        lambda calls, _: [(*call, "1") for call in calls[:1]],
    ),
    (
        _phrase_pattern(
            r"not (?:a|an|numeric)\b",
            "non-?numeric",
            r"no (?:number|integer)s?\b",
            "invalid number",
        ),
        _DERIVED_CONFIDENCE,
        _spoil_number,
    ),
    (_phrase_pattern(r"(?:by|of) (?:zero|0)\b"), _DERIVED_CONFIDENCE, _set_zero),
)
"""Patterns for invalid calls, each with a confidence and a builder of such calls."""


def _argparse_runs(source: str) -> Iterator[_ExpectedRun]:
    """Yield the exit codes that are certain for a program that uses argparse."""
    if "argparse" not in source or ".parse_args(" not in source or "exit_on_error=False" in source:
        return
    why = "Its argument parser exits this way."
    boundary = frozenset({"boundary"})
    if "add_help=False" not in source:
        fits = frozenset({"existence"})
        yield _ExpectedRun(("--help",), "", None, 0, _LIBRARY_CONFIDENCE, why, fits)
    yield _ExpectedRun(("--no-such-option",), "", None, 2, _LIBRARY_CONFIDENCE, why, boundary)
    if re.search(r"add_argument\(\s*[\"'][A-Za-z][\w-]*[\"'](?![^)]*nargs)", source):
        yield _ExpectedRun((), "", None, 2, _LIBRARY_CONFIDENCE, why, boundary)


def _run_candidate(run: _ExpectedRun) -> Candidate:
    given = shlex.join(run.arguments) or "no arguments"
    if run.stdin:
        given += f" with {json.dumps(run.stdin, ensure_ascii=False)} on standard input"
    return Candidate(given, run.fits, frozenset({given}), partial(_write_run_test, run))


def _write_run_test(run: _ExpectedRun) -> CandidateDetails:
    name = re.sub(r"[^a-z0-9]+", "_", " ".join(run.arguments).lower()).strip("_") or "nothing"
    body = {"arguments": [*run.arguments], "stdin": run.stdin, "exit_code": run.exit_code}
    return CandidateDetails(name, run.why, run.out, body, run.confidence)


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
_MAX_SENTENCE = 300
_MAX_PAIRS = 6
_HIGH_CONFIDENCE, _MEDIUM_CONFIDENCE, _LOW_CONFIDENCE = 0.8, 0.65, 0.4


def text_candidates(
    task: str,
    environment: Mapping[str, Any],
    categories: Sequence[str],
) -> Iterator[Candidate]:
    """Yield tests in words, by descending confidence; a sentence without a checkable statement yields none.

    Args:
        task: the description.
        environment: optionally with `prohibited_tools`.
        categories: all test categories.
    """
    sentences = [sentence[:_MAX_SENTENCE] for sentence in split_sentences(task)]
    for number, example in enumerate(find_examples(task)):
        if example.out is not None:
            kinds = ("correctness", "anti_cheat") if number % 2 else ("correctness", "existence")
            why = "An example of the description does not hold."
            confidence = _HIGH_CONFIDENCE if example.is_quoted else _LOW_CONFIDENCE
            yield _text_candidate(example.input_text, example.out or "nothing", why, confidence, *kinds)
    for tool in environment.get("prohibited_tools", ()):
        why = "A prohibited tool is used."
        yield _text_candidate(
            f"Look for any use of {tool}",
            "No use of it.",
            why,
            _HIGH_CONFIDENCE,
            "anti_cheat",
        )
    for sentence in sentences:
        yield from _limit_candidates(sentence)
        yield from _duty_candidates(sentence)
    stating = [one for one in sentences if _MUST.search(one) or _NEVER.search(one) or _NUMBER.search(one)]
    if "integration" in categories:
        for one, other in islice(pairwise(stating), _MAX_PAIRS):
            given = f"One after the other: {_shorten(one)} Then: {_shorten(other)}"
            yield _text_candidate(
                given,
                "Both hold.",
                "One breaks the other.",
                _LOW_CONFIDENCE,
                "integration",
            )


def _limit_candidates(sentence: str) -> Iterator[Candidate]:
    """Yield tests at and around each numeric limit of a sentence."""
    rest = sentence
    for found in _RANGE.finditer(sentence):
        rest = rest.replace(found[0], " ")
        least, most = _parse_limit(found["least"]), _parse_limit(found["most"])
        if least < most:
            yield from _candidates_around(sentence, ">=", least, found[0])
            yield from _candidates_around(sentence, "<=", most, found[0])
    for found in _NAMED_LIMIT.finditer(rest):
        operator = ">=" if found["kind"].lower().startswith("min") else "<="
        yield from _candidates_around(sentence, operator, _parse_limit(found["number"]), found[0])
        rest = rest.replace(found[0], " ")
    for bound in find_bounds(rest):
        named = f"{bound.operator} {bound.number:g}"
        yield from _candidates_around(sentence, bound.operator, bound.number, named)


def _candidates_around(sentence: str, operator: str, number: float, limit: str) -> Iterator[Candidate]:
    step = 1 if float(number).is_integer() else 0.1
    why = "The limit is off by one."
    for value in (number - step, number, number + step):
        holds = {"<=": value <= number, "<": value < number, ">=": value >= number, ">": value > number}
        verdict = "meets" if holds[operator] else "does not meet"
        told = f"{value:g}"
        given = f"Exactly {told}, given the limit: {_shorten(sentence)}"
        yield _text_candidate(
            given,
            f"{told} {verdict} the limit ({limit.strip()}).",
            why,
            _MEDIUM_CONFIDENCE,
            "boundary",
        )


def _duty_candidates(sentence: str) -> Iterator[Candidate]:
    """Yield tests of required, forbidden and conditional behaviour."""
    case = _WHEN.match(sentence)
    if case:
        given, then = case["case"] or case["case2"], case["then"] or case["then2"]
        why = "The consequence is missing."
        yield _text_candidate(
            given.strip().rstrip("."),
            then.strip(),
            why,
            _HIGH_CONFIDENCE,
            "correctness",
            "integration",
        )
    if _NEVER.search(sentence):
        why = "A prohibition is violated."
        given = f"Try to get around: {sentence}"
        yield _text_candidate(
            given,
            f"It still holds: {sentence}",
            why,
            _MEDIUM_CONFIDENCE,
            "correctness",
            "anti_cheat",
        )
    elif not case and _MUST.search(sentence):
        why = "A required behaviour is missing."
        yield _text_candidate(
            f"A usual case of: {sentence}",
            sentence,
            why,
            _MEDIUM_CONFIDENCE,
            "correctness",
        )
    for name in _CODE.findall(sentence):
        why = "It is missing, or has another name."
        yield _text_candidate(
            f"Look for {name}",
            f"It is there: {sentence}",
            why,
            _MEDIUM_CONFIDENCE,
            "existence",
        )


def _text_candidate(given: str, expected: str, why: str, confidence: float, *fits: str) -> Candidate:
    name = re.sub(r"[^a-z0-9]+", "_", given.lower()).strip("_") or "case"
    written = partial(CandidateDetails, name, why, expected, None, confidence)
    return Candidate(given, frozenset(fits), frozenset({given}), written)


def _parse_limit(text: str) -> float:
    return float(text)


def _shorten(sentence: str) -> str:
    return sentence if len(sentence) <= _MAX_SENTENCE // 2 else f"{sentence[: _MAX_SENTENCE // 2]}…"
