"""Sentence splitter of a written policy: sentences, clauses, word stems, and literals.

Literals are paths, hosts, addresses, quoted names, lists and numeric bounds. Stemming makes "written" equal
to "writes".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


PLACEHOLDER: Final = "\N{REFERENCE MARK}"
"""The placeholder of an extracted literal."""

_LITERAL = re.compile(
    r"""(?:(?P<quote>[`"])(?P<quoted>[^`"\n]{1,500})(?P=quote)|“(?P<curly>[^”\n]{1,500})”)"""
    r"""|(?P<url>[A-Za-z][A-Za-z0-9+.-]*://[^\s,;"'`<>]+)"""
    r"""|(?P<email>[A-Za-z0-9.!#$%&+*_{|}~-]*@(?:\*\.)?(?:[A-Za-z0-9_-]+\.)+[A-Za-z0-9_-]+)"""
    r"""|(?P<list>(?<!\w)@[A-Za-z_][\w-]*)"""
    r"""|(?P<path>(?<![\w/.:])/[^\s,;"'`<>()]{0,1000})"""
    r"""|(?P<host>(?<![\w@/.-])(?:\*\.)?(?:[a-z0-9][a-z0-9_-]*\.)+[a-z]{2,}(?![\w@]))""",
)
_BOUND = re.compile(
    r"\b(?P<most>at most|no more than|not more than|up to|a maximum of|not exceed(?:ing)?)"
    r"|\b(?P<more>more than|over|above|exceed(?:s|ing)?|greater than|larger than)"
    r"|\b(?P<less>less than|fewer than|under|below|smaller than)"
    r"|\b(?P<least>at least|no less than|not less than)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\s+(\d[\d,_]{0,14}(?:\.\d{1,9})?)\b")
_HOST_IN_URL = re.compile(
    r"://(?:[^/?#@]*@)?(?P<host>(?:[A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63})(?=[:/?#]|$)",
)
_OPERATORS = {"most": "<=", "more": ">", "less": "<", "least": ">="}
_OPPOSITE = {"<=": ">", ">": "<=", "<": ">=", ">=": "<"}
_JOINED = re.compile(r"(?:\s|,|\band\b|\bor\b)*", re.IGNORECASE)
_BUT_THESE = re.compile(
    r"(?:,\s*)?\b(?:(?:outside(?: of)?|other than|except(?: for)?|anywhere but|elsewhere than)(?:\s+\w+){0,3}"
    r"|not\s+(?:below|under|in|inside|within|to|at|on|from|among))\s*$",
    re.IGNORECASE,
)
_TRAILING = ".,:;!?"


@dataclass(frozen=True, slots=True)
class Literal:
    """Literal value in a clause.

    Attributes:
        kind: `path`, `domain`, `email`, `list` or `name`.
        value: the value, as a matcher entry.
        is_complement: True if the complement is meant: "outside /a".
    """

    kind: str
    value: str
    is_complement: bool = False


@dataclass(frozen=True, slots=True)
class NumericBound:
    """Comparison with a number: `<=`, `<`, `>=` or `>`."""

    operator: str
    number: float

    @property
    def negated(self) -> NumericBound:
        """Return the negated comparison."""
        return NumericBound(_OPPOSITE[self.operator], self.number)


@dataclass(frozen=True, slots=True)
class ExtractedLiterals:
    """Clause with its literals extracted.

    Attributes:
        text: the clause with a placeholder for each literal and bound.
        literals: the literals, in order.
        bound: the comparison; None without one.
    """

    text: str
    literals: tuple[Literal, ...]
    bound: NumericBound | None


def extract_literals(clause: str) -> ExtractedLiterals:
    """Extract the literals and the bound of a clause."""
    literals: list[Literal] = []
    text = ""
    end = 0
    for match in _LITERAL.finditer(clause):
        kind, value = _clean_value(match)
        before = clause[end : match.start()]
        excepted = _BUT_THESE.search(before)
        joined = bool(literals) and _JOINED.fullmatch(before) is not None
        literals.append(Literal(kind, value, literals[-1].is_complement if joined else excepted is not None))
        text += f"{before[: excepted.start()] if excepted else before} {PLACEHOLDER} "
        end = match.start() + len(match.group().rstrip(_TRAILING))
    text += clause[end:]
    bound, text = _extract_bound(text)
    return ExtractedLiterals(text, tuple(literals), bound)


def _clean_value(match: re.Match[str]) -> tuple[str, str]:
    quoted = match["quoted"] or match["curly"]
    if quoted is not None:
        inner = _LITERAL.fullmatch(quoted)
        return _clean_value(inner) if inner and not inner["quote"] else ("name", quoted)
    text = match.group().rstrip(_TRAILING)
    if match["url"]:
        host = _HOST_IN_URL.search(text)
        return ("domain", host["host"]) if host else ("name", text)
    if match["email"]:
        return "email", text if not text.startswith("@") else f"*{text}"
    if match["list"]:
        return "list", text
    return ("path", text) if match["path"] else ("domain", text)


def _extract_bound(text: str) -> tuple[NumericBound | None, str]:
    for match in _BOUND.finditer(text):
        number = _NUMBER.match(text, match.end())
        if number:
            value = float(number[1].replace(",", "").replace("_", ""))
            whole = int(value) if value.is_integer() else value
            kind = next(name for name, found in match.groupdict().items() if found)
            return NumericBound(_OPERATORS[kind], whole), f"{text[: match.start()]} {text[number.end() :]}"
    return None, text


_HEADING = re.compile(r"\s*#")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+")
_END = re.compile(r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<=[.!?])[ \t]+|(?<=[\u3002\uff01\uff1f])")
_CLAUSE = re.compile(r";\s*|,?\s+but\s+|,\s+and\s+(?=(?:must|may|can|never)\b)", re.IGNORECASE)
_BARE_NOT = re.compile(r"not\b", re.IGNORECASE)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a Markdown text, without its headings.

    A list item below a line that ends with a colon is appended to that line: "It may: read files".
    """
    found: list[str] = []
    opening = ""
    for paragraph, is_item in _iter_paragraphs(text):
        if paragraph.endswith(":"):
            opening = paragraph
            continue
        if not is_item:
            opening = ""
        found += filter(None, _END.split(f"{opening} {paragraph}".strip()))
    return found


def split_clauses(sentence: str) -> list[str]:
    """Split a sentence into clauses that each decide something: "a; b", "a, but not b", "a, and never b"."""
    first, *others = (part.strip() for part in _CLAUSE.split(sentence))
    return [
        first,
        *(_BARE_NOT.sub("never", part, count=1) if _BARE_NOT.match(part) else part for part in others),
    ]


def _iter_paragraphs(text: str) -> Iterator[tuple[str, bool]]:
    """Yield paragraphs and list items, each on one line, and whether it is an item."""
    lines: list[str] = []
    is_item = False
    for line in [*text.splitlines(), ""]:
        item = _ITEM.match(line)
        if lines and (item or not line.strip() or _HEADING.match(line)):
            yield " ".join(lines), is_item
            lines, is_item = [], False
        if item:
            is_item = True
        if line.strip() and not _HEADING.match(line):
            lines.append(line[item.end() :].strip() if item else line.strip())


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_ENDINGS = ("ings", "ing", "ions", "ion", "ies", "ied", "es", "ed", "en", "s", "e", "y")
_IRREGULAR = {"sent": "send", "wrote": "write", "ran": "run", "made": "make", "got": "get", "put": "put"}
_SHORTEST = 3


@cache
def stem(word: str) -> str:
    """Return the approximate stem of a word."""
    word = _IRREGULAR.get(word.casefold(), word.casefold())
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            word = word.removesuffix(ending)
            break
    if len(word) > _SHORTEST and word[-1] in {"y", word[-2]}:
        return word[:-1]
    return word


def stems(text: str) -> frozenset[str]:
    """Return the stems of all words of a text; the parts of `snake_case` and `camelCase` are words too."""
    return frozenset(map(stem, _WORD.findall(text)))


STOP_WORDS: Final = stems(
    "a an the it he she we you i our your any all every each both everything anything nothing nobody"
    " of in into on onto at to from by for with within inside below under beneath above over through via"
    " using used use between and or nor so also only just even still always ever is are was were be been"
    " being do does done has have had will would must may might can could shall should not no never"
    " allowed allow allows permit permitted permits fine free freely assistant agent model caller callers"
    " tool tools call calls called request requests person human"
    " return returns give gives",
)
"""Stop words: words that do not affect a decision."""

PLACE_WORDS: Final = stems(
    "path paths folder folders directory directories file files host hosts domain domains site sites"
    " address addresses recipient recipients list lists argument arguments value values name names",
)
"""Words beside a literal that also identify tools."""
