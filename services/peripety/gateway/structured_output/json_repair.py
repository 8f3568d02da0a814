"""JSON repair: finds JSON in model text, and repairs it where that needs no guess about content.

There are three stages, each used only if the one before failed, and each ends in the same strict parser.
First the text unchanged. Then a normalized text, for errors with a single meaning: comments, trailing
commas, other quotes, bare keys, Python's literals, raw line breaks in strings. Then a repair library, for
missing commas and unescaped quotes. The library's result is accepted only if no text was lost or changed:
it may add quotes, commas, colons and escapes, but no bracket. A truncated answer lacks at least a bracket,
so none is ever completed; `complete_members` returns the members of a truncated object that are whole.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import jiter

from peripety import engine
from peripety.engine.schema_validation import MAX_FINDINGS, format_pointer
from peripety.errors import Finding, SpecError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


# A bracket followed by something that cannot continue a document is prose.
_OPENER = re.compile(r"""\{(?=\s*+["'}\w$/\#])|\[(?=\s*+["'\]{\[\d/\#tfnTFNI-])""")
_TOKEN = re.compile(
    r"""
      (?P<mark>[{}\[\]:,])
    | (?P<space>\s+)
    | "(?P<string>[^"\\]*+(?:\\.[^"\\]*+)*+)(?P<string_end>")?
    | (?P<comment>//[^\n]*+|\#[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/)?)
    | (?P<word>[^\s{}\[\]:,"'/\#]++)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
# An apostrophe ends a string only where a value or a key can end.
_SINGLE_QUOTED = re.compile(
    r"'(?P<string>[^'\\]*+(?:(?:\\.|'(?!\s*+(?:[,:}\]]|\Z)))[^'\\]*+)*+)(?P<string_end>')?",
    re.DOTALL,
)
_TO_ESCAPE = re.compile(r'\\.|["\x00-\x1f]', re.DOTALL)
_BARE_KEY = re.compile(r"(?:[^\W\d]|\$)[\w$-]*")
_COLON_NEXT = re.compile(r"\s*+:")
_DOCUMENT_START = re.compile(
    r"""\[\s*+\[|(?:\[\s*+)?\{\s*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\\n]*+'|[^\W\d]\w*+)\s*+:""",
    re.DOTALL,
)
_LITERAL = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_PYTHON_LITERALS = {"True": "true", "False": "false", "None": "null"}
_VALUE_FOLLOWS = frozenset("{[,:")
# Limit on failed parses: each unclosed bracket is followed to the end of the text.
_MAX_FAILED_PARSES = 2
_FREE_CHARACTERS = 65_536
_DOCUMENT_COST = 256
# The library is quadratic on some texts: 0.1 s for this size in the worst known case.
_MAX_REPAIR_LENGTH = 32_768
_ADDABLE_CHARACTERS = frozenset('",:\\')


@dataclass(frozen=True, slots=True)
class JsonCandidate:
    """Parse result of one stretch of text that looks like a whole JSON document.

    Attributes:
        document: the document as strict JSON; None if it cannot be parsed.
        value: its value.
        findings: why it cannot be parsed.
        size: its length in the text, in characters.
    """

    document: str | None
    value: Any = None
    findings: tuple[Finding, ...] = ()
    size: int = 0

    @property
    def is_truncated(self) -> bool:
        """Return True if its end is missing."""
        return any(finding.code == "CUT_OFF" for finding in self.findings)


_TRUNCATED = JsonCandidate(
    None,
    findings=(
        Finding(
            "CUT_OFF",
            "",
            "a bracket or a quote is never closed; write the whole document, or a shorter one",
        ),
    ),
)


def parse_candidates(text: str, *, truncated: bool = False) -> Iterator[JsonCandidate]:
    """Parse every whole document in a text, in order; a result without a document ends the sequence.

    A document extends from a bracket to the matching one, regardless of the text around it. An unclosed
    document was truncated. Complete parts inside it belong to an answer but are not the answer.

    Args:
        text: the model's text.
        truncated: whether the model was stopped early. Nothing is repaired then, and a bare number may be
            truncated.
    """
    try:
        value = engine.parse(text)
    except SpecError:
        pass
    else:
        alone = isinstance(value, (int, float)) and not isinstance(value, bool)
        yield _TRUNCATED if truncated and alone else JsonCandidate(text.strip(), value)
        return
    found = False
    for stretch in _find_spans(text):
        found = True
        if stretch.end is None:
            yield replace(_TRUNCATED, size=len(text) - stretch.start)
        else:
            yield replace(_parse_span(text, stretch, truncated=truncated), size=stretch.end - stretch.start)
    if not found:
        yield JsonCandidate(None, findings=(Finding("NOT_JSON", "", "it contains no object or array"),))


@dataclass(frozen=True, slots=True)
class PartialDocument:
    """A document that may be incomplete.

    Attributes:
        start: its start in the text.
        document: its complete part as JSON: incomplete values are removed, and open brackets are closed.
        depth: number of open brackets; 0 if it is complete.
    """

    start: int
    document: str
    depth: int


def find_partial_documents(text: str) -> Iterator[PartialDocument]:
    """Yield the documents in a text that is incomplete or was truncated, in order."""
    for stretch in _find_spans(text):
        closed = stretch.normalized[: stretch.complete_end] + stretch.closers
        yield PartialDocument(stretch.start, closed, len(stretch.closers))


@dataclass(frozen=True, slots=True)
class _BracketSpan:
    """Stretch of text from an opening bracket to the matching one.

    Attributes:
        start: its start.
        end: its end; None if it is never closed.
        normalized: the normalized text as JSON.
        complete_end: end of the prefix of `normalized` without an incomplete value or a key without value.
        closers: the brackets that would close it at that point.
        is_unambiguous: whether every word in it has a single interpretation.
    """

    start: int
    end: int | None
    normalized: str
    complete_end: int
    closers: str
    is_unambiguous: bool


def _find_spans(text: str) -> Iterator[_BracketSpan]:
    position = 0
    budget = _FREE_CHARACTERS + _MAX_FAILED_PARSES * len(text)
    while budget > 0 and (opener := _OPENER.search(text, position)):
        stretch = _Normalizer(text, opener.start()).run()
        if stretch.end is not None:
            yield stretch
            budget -= _DOCUMENT_COST
            position = stretch.end
        elif _is_truncated_document(text, stretch):
            yield stretch
            return
        else:
            budget -= len(text) - position
            position = opener.end()


def _is_truncated_document(text: str, span: _BracketSpan) -> bool:
    """Return True if an unclosed bracket starts a document, and is not just punctuation."""
    if _DOCUMENT_START.match(text, span.start):
        return True
    try:
        jiter.from_json(span.normalized.encode(errors="surrogatepass"), partial_mode=True)
    except ValueError:
        return False
    return True


class _Normalizer:
    """One normalization pass over a document that is almost JSON."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = start
        self._output: list[str] = []
        self._before = ""
        self._comma = 0
        self._complete_end = 0
        self._closers: list[str] = []
        self._is_unambiguous = True

    def run(self) -> _BracketSpan:
        position = self._start
        end = None
        while end is None and position < len(self._text):
            token = self._token(position)
            position = token.end()
            self._consume(token)
            if not self._closers:
                end = position
        whole = sum(map(len, self._output[: self._complete_end]))
        closers = "".join(reversed(self._closers))
        return _BracketSpan(self._start, end, "".join(self._output), whole, closers, self._is_unambiguous)

    def _token(self, position: int) -> re.Match[str]:
        quoted = self._text[position] == "'" and self._before in _VALUE_FOLLOWS
        token = (_SINGLE_QUOTED if quoted else _TOKEN).match(self._text, position)
        assert token is not None  # noqa: S101 - one of them matches any character
        return token

    def _consume(self, token: re.Match[str]) -> None:
        match token.lastgroup:
            case "space":
                self._output.append(token.group())
                return
            case "comment":
                self._output.append(" ")
                return
            case "mark":
                self._mark(token.group())
            case "word":
                self._word(token)
            case "string_end":
                self._write(f'"{_TO_ESCAPE.sub(_escape, token["string"])}"', '"')
            case _:
                self._write(token.group(), "?")

    def _mark(self, mark: str) -> None:
        if mark in "]}":
            self._closers.pop()
            if self._before == ",":
                self._output[self._comma] = ""
        elif mark in "[{":
            self._closers.append("]" if mark == "[" else "}")
        elif mark == ",":
            self._is_unambiguous = self._is_unambiguous and self._before not in _VALUE_FOLLOWS
            self._comma = self._complete_end = len(self._output)
        self._write(mark, mark)
        if mark in "[]{}":
            self._complete_end = len(self._output)

    def _word(self, token: re.Match[str]) -> None:
        word = token.group()
        if self._before in _VALUE_FOLLOWS:
            if _COLON_NEXT.match(self._text, token.end()) and _BARE_KEY.fullmatch(word):
                word = f'"{word}"'
            else:
                word = _PYTHON_LITERALS.get(word, word)
                self._is_unambiguous = self._is_unambiguous and _LITERAL.fullmatch(word) is not None
        # A string concatenation in another language is not one string that contains an operator.
        self._is_unambiguous = self._is_unambiguous and word != "+"
        self._write(word, "?")

    def _write(self, text: str, kind: str) -> None:
        self._output.append(text)
        self._before = kind


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    if character == r"\'":
        return "'"
    return character if character[0] == "\\" else json.dumps(character)[1:-1]


def _parse_span(text: str, span: _BracketSpan, *, truncated: bool) -> JsonCandidate:
    written = text[span.start : span.end]
    try:
        return JsonCandidate(written, engine.parse(written))
    except SpecError as error:
        refused = error.findings
    if span.normalized != written:
        try:
            return JsonCandidate(span.normalized, engine.parse(span.normalized))
        except SpecError:
            pass
    faults = tuple(islice(_strict_violations(span.normalized), MAX_FINDINGS))
    if faults:
        return JsonCandidate(None, findings=faults)
    mended = _repair(span) if span.is_unambiguous and not truncated else None
    if mended is not None:
        return mended
    return JsonCandidate(None, findings=tuple(Finding("NOT_JSON", f.path, f.message) for f in refused))


def _repair(span: _BracketSpan) -> JsonCandidate | None:
    if len(span.normalized) > _MAX_REPAIR_LENGTH:
        return None
    from json_repair import repair_json  # noqa: PLC0415 - most answers need no repair, and it takes 1 MB

    try:
        repaired = repair_json(span.normalized, return_objects=True, skip_json_loads=True, strict=True)
        mended = json.dumps(repaired, ensure_ascii=False, separators=(",", ":"))
        return (
            JsonCandidate(mended, engine.parse(mended)) if _preserves_text(mended, span.normalized) else None
        )
    except Exception:  # noqa: BLE001 - whatever the library stumbles over, the text is then not mended
        return None


def _preserves_text(repaired: str, text: str) -> bool:
    """Return True if the repaired text contains the whole text, in order, with only separators added."""
    rest = iter(character for character in text if not character.isspace())
    wanted = next(rest, None)
    for character in repaired:
        if character == wanted:
            wanted = next(rest, None)
        elif character not in _ADDABLE_CHARACTERS and not character.isspace():
            return False
    return wanted is None


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of an object in their order, duplicates included."""


def _parse_integer(digits: str) -> float:
    """Parse an integer.

    Values beyond the float range become infinite, including those that Python refuses to parse.
    """
    return int(digits) if len(digits) <= sys.float_info.max_10_exp else float(digits)


def _strict_violations(document: str) -> Iterator[Finding]:
    """Yield what the strict parser rejects in a syntactically valid document, with its path."""
    try:
        value = json.loads(document, object_pairs_hook=_Pairs, parse_int=_parse_integer)
    except (ValueError, RecursionError):
        return
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while pending:
        place, value = pending.pop()
        if isinstance(value, _Pairs):
            for key, times in Counter(key for key, _ in value).items():
                if times > 1:
                    message = f"the key occurs {times} times in one object; remove the duplicates"
                    yield Finding("DUPLICATE_KEY", format_pointer((*place, key)), message)
            pending += [((*place, key), inner) for key, inner in reversed(value)]
        elif isinstance(value, list):
            pending += [((*place, index), inner) for index, inner in reversed(list(enumerate(value)))]
        elif isinstance(value, float) and not math.isfinite(value):
            yield Finding(
                "NOT_FINITE",
                format_pointer(place),
                "is not finite; write a smaller number, or null",
            )


_OPEN_MEMBER, _OPEN_PART = 2, 3


def complete_members(text: str, divisible: Collection[str]) -> dict[str, Any] | None:
    """Return the members of a truncated object that are complete, exactly as the model wrote them.

    Nothing is completed: a member without its end is removed as a whole. Members named as divisible retain
    their complete elements.

    Args:
        text: the model's text, with anything around the object.
        divisible: keys whose arrays or objects may be cut between elements.

    Returns:
        The object, not validated; None if no member is complete.
    """
    begun = list(find_partial_documents(text))[-1:]
    value = _parse_members(begun[0].document) if begun else None
    if not isinstance(value, dict):
        return None
    if begun[0].depth >= _OPEN_MEMBER:
        key = next(reversed(value))
        if key not in divisible:
            del value[key]
        elif begun[0].depth >= _OPEN_PART:
            _remove_last(value[key])
    return value or None


def _parse_members(document: str) -> Any:
    try:
        # It preserves the order of keys, which identifies the last one.
        return jiter.from_json(document.encode(), catch_duplicate_keys=True, allow_inf_nan=False)
    except ValueError:
        return None


def _remove_last(parts: Any) -> None:
    if isinstance(parts, dict):
        parts.popitem()
    else:
        parts.pop()
