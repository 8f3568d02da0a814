r"""Pattern syntax: a parser of regular expressions and globs, with one tree over Unicode scalars.

The supported syntax is the common subset of regular expressions that every engine reads alike and that can
be matched in linear time. Character classes and case folding never depend on Unicode tables: `\d`, `\w`,
`\s`, `\b` and `(?i)` cover ASCII, and every other character is itself. `^` and `$` are the ends of the
whole text; `.` is anything but a line feed.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn

from peripety.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable


class TextKind(StrEnum):
    """Comparison of a text with a pattern."""

    EXACT = "exact"
    CONTAINS = "contains"
    REGEX = "regex"  # found anywhere, unless anchored
    GLOB = "glob"  # matches the whole text: * any characters, ? one character, [..] one of these
    ANY = "any"


@dataclass(frozen=True, slots=True)
class TextPattern:
    """Pattern for one text; `ignore_case` folds ASCII letters only."""

    kind: TextKind
    text: str = ""
    ignore_case: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """Conjunction of predicates; absent ones always match.

    Attributes:
        text: for the prompt, which is empty if only tool results arrived.
        model: for the name of the model.
        tool_result: for the arrived tool results, joined by newlines; never matches without any.
        message_index: minimum and maximum number of earlier answers in the conversation.
    """

    text: TextPattern = field(default_factory=lambda: TextPattern(TextKind.ANY))
    model: TextPattern | None = None
    tool_result: TextPattern | None = None
    message_index: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class MatchSubject:
    """Texts that patterns are matched against; see `Pattern` for the fields."""

    text: str
    model: str = ""
    tool_result: str | None = None
    message_index: int = 0


MAX_CHARACTERS = 20_000
"""Maximum length of a pattern in characters; `exact` and `contains` have no limit."""
MAX_NESTING = 100
"""Maximum nesting depth of groups and repetitions."""
MAX_REPETITIONS = 1_000
"""Maximum count of a repetition."""
MAX_PATTERN_SIZE = 2_000
"""Maximum size of a pattern with expanded repetitions. Each character, set, group, choice and repetition
counts 1; a set counts 1 more for each range beyond ASCII.
"""

_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)


class PatternError(InvalidArgumentError):
    """Invalid pattern; the message holds the problem, the column and the fix.

    Attributes:
        column: position in the pattern, from 1.
    """

    default_code = "BAD_PATTERN"

    def __init__(self, message: str, column: int) -> None:
        super().__init__(f"{message} (column {column})")
        self.column = column


# ---- syntax tree


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a set: closed ranges of code points, sorted, that do not touch."""

    ranges: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """Size of the set towards `MAX_PATTERN_SIZE`."""
        return 1 + sum(last > 0x7F for _, last in self.ranges)  # noqa: PLR2004 - the last of ASCII


class Assertion(Enum):
    """Zero-width assertion."""

    START = "start"
    END = "end"
    BOUNDARY = "boundary"
    NO_BOUNDARY = "no boundary"


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Concatenation; an empty sequence is the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """Alternatives."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Repetition; an unbounded one has None as `maximum`."""

    node: Node
    minimum: int
    maximum: int | None


Node = Characters | Assertion | Concatenation | Alternation | Repeat

EMPTY = Concatenation(())


def fold(text: str) -> str:
    """Return the text with ASCII capitals in lower case, and nothing else changed."""
    return text.encode("utf-8").lower().decode("utf-8")


def require_unicode(text: str) -> None:
    """Raise unless the text is valid Unicode.

    Raises:
        PatternError: it contains a lone surrogate.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise PatternError(
            "the pattern contains a lone surrogate, which is not valid Unicode; leave it out",
            error.start + 1,
        ) from None


def parse_pattern(pattern: TextPattern) -> Node:
    """Parse a pattern; a text matches if some part of it matches the tree.

    Raises:
        PatternError: invalid syntax, over a limit, or not valid Unicode.
    """
    text = pattern.text
    require_unicode(text)
    match pattern.kind:
        case TextKind.ANY:
            return EMPTY
        case TextKind.EXACT:
            folds = pattern.ignore_case
            return Concatenation((Assertion.START, *_literal_characters(text, folds=folds), Assertion.END))
        case TextKind.CONTAINS:
            return Concatenation(_literal_characters(text, folds=pattern.ignore_case))
        case TextKind.GLOB:
            return _GlobParser(text, folds=pattern.ignore_case).parse()
        case TextKind.REGEX:
            return _RegexParser(text, folds=pattern.ignore_case).parse()


def _literal_characters(text: str, *, folds: bool) -> tuple[Characters, ...]:
    return tuple(_single_character(character, folds=folds) for character in text)


# ---- character sets

_Ranges = list[tuple[int, int]]


def _to_ranges(characters: str) -> _Ranges:
    return [(ord(character), ord(character)) for character in characters]


_DIGITS: _Ranges = [(ord("0"), ord("9"))]
_UPPER = (ord("A"), ord("Z"))
_LOWER = (ord("a"), ord("z"))
_CASE_OFFSET = ord("a") - ord("A")
_WORD: _Ranges = [*_DIGITS, _UPPER, (ord("_"), ord("_")), _LOWER]
_SPACE: _Ranges = [(ord("\t"), ord("\r")), (ord(" "), ord(" "))]
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_NAMED_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_HEX_DIGITS = {"x": 2, "u": 4}


def _merge_ranges(ranges: Iterable[tuple[int, int]]) -> _Ranges:
    merged: _Ranges = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _complement_ranges(ranges: Iterable[tuple[int, int]]) -> _Ranges:
    complement: _Ranges = []
    following = 0
    for first, last in [*_merge_ranges(ranges), (_LAST_CODE_POINT + 1, _LAST_CODE_POINT + 1)]:
        low, high = following, first - 1
        # Ranges never begin or end inside the surrogates, which are not characters.
        low = _SURROGATES[1] + 1 if _SURROGATES[0] <= low <= _SURROGATES[1] else low
        high = _SURROGATES[0] - 1 if _SURROGATES[0] <= high <= _SURROGATES[1] else high
        if low <= high:
            complement.append((low, high))
        following = last + 1
    return complement


def _build_set(ranges: Iterable[tuple[int, int]], *, folds: bool) -> Characters:
    """Build a set; with `folds`, both cases of each ASCII letter in it."""
    wanted = [*ranges]
    if folds:
        for case, offset in ((_UPPER, _CASE_OFFSET), (_LOWER, -_CASE_OFFSET)):
            for first, last in tuple(wanted):
                low, high = max(first, case[0]), min(last, case[1])
                if low <= high:
                    wanted.append((low + offset, high + offset))
    return Characters(tuple(_merge_ranges(wanted)))


@lru_cache(maxsize=1024)
def _single_character(character: str, *, folds: bool) -> Characters:
    return _build_set(_to_ranges(character), folds=folds)


ANYTHING = Characters(tuple(_complement_ranges([])))


# ---- parsing


class _PatternParser:
    """Common base of both parsers."""

    def __init__(self, text: str, *, folds: bool) -> None:
        self.text = text
        self.at = 0
        self.folds = folds
        if len(text) > MAX_CHARACTERS:
            self.fail(f"a pattern has at most {MAX_CHARACTERS} characters; split it", MAX_CHARACTERS)

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        raise PatternError(message, (self.at if at is None else at) + 1)

    def peek(self, amount: int = 1) -> str:
        return self.text[self.at : self.at + amount]

    def skip_if(self, expected: str) -> bool:
        """Skip the expected text and return True, if it is next."""
        if not self.text.startswith(expected, self.at):
            return False
        self.at += len(expected)
        return True

    def check_size(self, node: Node) -> Node:
        if _count_size(node) > MAX_PATTERN_SIZE:
            self.fail(
                f"the pattern becomes larger than {MAX_PATTERN_SIZE} characters when its "
                "repetitions are written "
                "out; repeat less, or split it",
                0,
            )
        return node


def _count_size(node: Node) -> int:
    match node:
        case Characters():
            return node.size
        case Assertion():
            return 1
        case Concatenation(nodes) | Alternation(nodes):
            return 1 + sum(map(_count_size, nodes))
        case Repeat(inner, least, most):
            return 1 + _count_size(inner) * max(1, least if most is None else most)


class _GlobParser(_PatternParser):
    """Glob parser: `*` any characters, `?` one character, `[abc]`, `[a-z]`, `[!abc]`.

    Everything else is literal.
    """

    def parse(self) -> Node:
        parts: list[Node] = [Assertion.START]
        while self.at < len(self.text):
            start, character = self.at, self.peek()
            self.at += 1
            if character == "*":
                parts.append(Repeat(ANYTHING, 0, None))
            elif character == "?":
                parts.append(ANYTHING)
            elif character == "[":
                parts.append(self._parse_set(start))
            else:
                parts.append(_single_character(character, folds=self.folds))
        parts.append(Assertion.END)
        # A leading or trailing star is redundant in a search.
        if len(parts) > 2 and isinstance(parts[-2], Repeat):  # noqa: PLR2004 - more than the two ends
            parts = parts[:-2]
        if len(parts) > 1 and isinstance(parts[1], Repeat):
            parts = parts[2:]
        return self.check_size(Concatenation(tuple(parts)))

    def _parse_set(self, start: int) -> Characters:
        negated = self.skip_if("!")
        ranges: _Ranges = []
        while not (ranges and self.peek() == "]"):
            first = self.peek()
            if not first or "]" not in self.text[self.at + 1 :]:
                self.fail("a set of characters is never closed; write [[] for the character [", start)
            self.at += 1
            last = first
            if self.peek() == "-" and self.peek(2) not in {"-", "-]"}:
                last = self.peek(2)[1]
                self.at += 2
            if last < first:
                self.fail(f"the range {first}-{last} is empty; write {last}-{first}", start)
            ranges.append((ord(first), ord(last)))
        self.at += 1
        wanted = _build_set(ranges, folds=self.folds)
        return Characters(tuple(_complement_ranges(wanted.ranges))) if negated else wanted


_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_ASSERTIONS = {"^": Assertion.START, "$": Assertion.END}
_BOUNDARIES = {"b": Assertion.BOUNDARY, "B": Assertion.NO_BOUNDARY}
_UNSUPPORTED_GROUPS = {
    "(?=": "lookahead",
    "(?!": "lookahead",
    "(?<=": "lookbehind",
    "(?<!": "lookbehind",
    "(?>": "an atomic group",
    "(?P=": "a backreference",
    "(?P>": "a recursive group",
    "(?R": "a recursive group",
    "(?(": "a condition",
}
_DOT = Characters(tuple(_complement_ranges(_to_ranges("\n"))))


class _RegexParser(_PatternParser):
    """Recursive-descent parser of regular expressions."""

    def parse(self) -> Node:
        self.folds |= self.skip_if("(?i)")
        node = self._parse_alternation(0)
        if self.at < len(self.text):
            self.fail("unmatched ); write \\) for the character )")
        return self.check_size(node)

    def _parse_alternation(self, depth: int) -> Node:
        if depth > MAX_NESTING:
            self.fail(f"groups are nested more than {MAX_NESTING} deep; nest less")
        options = [self._parse_sequence(depth)]
        while self.skip_if("|"):
            options.append(self._parse_sequence(depth))
        return options[0] if len(options) == 1 else Alternation(tuple(options))

    def _parse_sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while (character := self.peek()) and character not in "|)":
            parts.append(self._parse_quantified(depth))
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def _parse_quantified(self, depth: int) -> Node:
        start = self.at
        node = self._parse_atom(depth)
        quantifier = self._parse_quantifier()
        if quantifier is None:
            return node
        if isinstance(node, Assertion) and self.text[start] != "(":
            self.fail("nothing to repeat; write \\ before the character itself", start)
        self.skip_if("?")  # lazy and greedy quantifiers match the same texts
        if self.peek() == "+":
            self.fail("a possessive quantifier is not linear-time; remove the second +")
        again = self.at
        if self._parse_quantifier() is not None:
            self.fail("a quantifier follows a quantifier; put the first one into a group", again)
        return Repeat(node, *quantifier)

    def _parse_quantifier(self) -> tuple[int, int | None] | None:
        start, character = self.at, self.peek()
        if character in _QUANTIFIERS:
            self.at += 1
            return _QUANTIFIERS[character]
        end = self.text.find("}", self.at)
        if character != "{" or end < 0:
            return None
        inside = self.text[self.at + 1 : end]
        low, comma, high = inside.partition(",")
        if not _is_number(low or high) or not _is_number(high or low):
            return None  # a brace without a count is literal, as in JSON
        if not low:
            self.fail("a counted repetition needs a minimum; write {0,…}", start)
        least = _parse_count(low)
        most = least if not comma else _parse_count(high) if high else None
        if max(least, most or 0) > MAX_REPETITIONS:
            self.fail(f"a counted repetition goes up to {MAX_REPETITIONS}; use * or +, or count less", start)
        if most is not None and most < least:
            self.fail(f"the repetition {{{inside}}} is empty; write the smaller number first", start)
        self.at = end + 1
        return least, most

    def _parse_atom(self, depth: int) -> Node:
        start, character = self.at, self.peek()
        if self._parse_quantifier() is not None:
            self.fail("nothing to repeat; write \\ before the character itself", start)
        self.at += 1
        if character == "(":
            return self._parse_group(start, depth)
        if character == "[":
            return self._parse_set(start)
        if character == "\\":
            return self._parse_escape(start)
        if character == ".":
            return _DOT
        if character in _ASSERTIONS:
            return _ASSERTIONS[character]
        return _single_character(character, folds=self.folds)

    def _parse_group(self, start: int, depth: int) -> Node:
        for opening, name in _UNSUPPORTED_GROUPS.items():
            if self.text.startswith(opening, start):
                self.fail(f"{name} ({opening}…) is not linear-time; use several patterns", start)
        if self.skip_if("?") and not self.skip_if(":"):
            named = self.skip_if("P<") or self.skip_if("<")
            end = self.text.find(">", self.at)
            if not named or not self.text[self.at : end].isidentifier():
                self.fail("only (…), (?:…), (?P<name>…) and, at the start, (?i) are supported", start)
            self.at = end + 1
        node = self._parse_alternation(depth + 1)
        if not self.skip_if(")"):
            self.fail("the group is not closed; write \\( for the character (", start)
        return node

    def _parse_escape(self, start: int) -> Node:
        character = self.peek()
        if character in _BOUNDARIES and character:
            self.at += 1
            return _BOUNDARIES[character]
        if (character.isdigit() and character.isascii()) or character == "k":
            self.fail("a backreference is not linear-time; use several patterns", start)
        return _build_set(self._parse_escaped_set(start), folds=self.folds)

    def _parse_escaped_set(self, start: int) -> _Ranges:
        """Parse an escape after its backslash, inside or outside a set."""
        character = self.peek()
        self.at += 1
        if not character:
            self.fail("the pattern ends after a backslash; write \\\\ for the character itself", start)
        if character in _HEX_DIGITS:
            digits = self.peek(_HEX_DIGITS[character])
            if len(digits) < _HEX_DIGITS[character] or not set(digits) <= set(string.hexdigits):
                self.fail(f"\\{character} needs {_HEX_DIGITS[character]} hexadecimal digits", start)
            self.at += len(digits)
            code = int(digits, 16)
            if _SURROGATES[0] <= code <= _SURROGATES[1]:
                self.fail("a lone surrogate is not a character; write the character itself", start)
            return [(code, code)]
        if character.lower() in _CLASSES:
            ranges = _CLASSES[character.lower()]
            return ranges if character.islower() else _complement_ranges(ranges)
        if character in _NAMED_ESCAPES:
            return _to_ranges(_NAMED_ESCAPES[character])
        if character.isalnum():
            self.fail(
                f"\\{character} is not supported; use \\d \\w \\s \\b, their opposites in capitals, \\n "
                "\\t \\r \\f \\v, \\xHH and \\uHHHH; the ends of the text are ^ and $",
                start,
            )
        return _to_ranges(character)

    def _parse_set(self, start: int) -> Characters:
        negated = self.skip_if("^")
        ranges: _Ranges = []
        first = True
        while first or self.peek() != "]":
            first = False
            ranges += self._parse_set_member(start)
        self.at += 1
        wanted = _build_set(ranges, folds=self.folds)
        return Characters(tuple(_complement_ranges(wanted.ranges))) if negated else wanted

    def _parse_set_member(self, start: int) -> _Ranges:
        here = self.at
        low = self._parse_set_character(start)
        if self.peek() != "-" or self.peek(2) in {"-", "-]"}:
            return low
        self.at += 1
        high = self._parse_set_character(start)
        if len(low) != 1 or len(high) != 1 or low[0][0] != low[0][1] or high[0][0] != high[0][1]:
            self.fail("a range needs two single characters; write \\- for the character -", here)
        if high[0][0] < low[0][0]:
            self.fail(
                "the range is empty: it must go from the smaller character to the larger; turn it round",
                here,
            )
        return [(low[0][0], high[0][0])]

    def _parse_set_character(self, start: int) -> _Ranges:
        character = self.peek()
        if not character:
            self.fail("a set of characters is never closed; write \\[ for the character [", start)
        if self.peek(2) == "[:":
            self.fail("POSIX classes are not supported; write the range itself, such as A-Z")
        here = self.at
        self.at += 1
        return self._parse_escaped_set(here) if character == "\\" else _to_ranges(character)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _parse_count(text: str) -> int:
    """Parse a number; one with too many digits becomes a number over the limit.

    Digits are bounded first, because parsing a very long number is slow.
    """
    digits = text.lstrip("0") or "0"
    return int(digits) if len(digits) <= len(str(MAX_REPETITIONS)) else MAX_REPETITIONS + 1
