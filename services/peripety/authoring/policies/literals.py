"""Extraction of literals from a clause: paths, hosts, addresses, quoted names, lists, and numeric bounds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["PLACE", "Bound", "Literal", "Read", "read"]

PLACE: Final = "\N{REFERENCE MARK}"
"""The placeholder of an extracted literal."""

_LITERAL = re.compile(
    r"""(?:(?P<quote>[`"])(?P<quoted>[^`"\n]{1,500})(?P=quote)|“(?P<curly>[^”\n]{1,500})”)"""
    r"""|(?P<url>[A-Za-z][A-Za-z0-9+.-]*://[^\s,;"'`<>]+)"""
    r"""|(?P<email>[A-Za-z0-9.!#$%&+*_{|}~-]*@(?:\*\.)?(?:[A-Za-z0-9_-]+\.)+[A-Za-z0-9_-]+)"""
    r"""|(?P<list>(?<!\w)@[A-Za-z_][\w-]*)"""
    r"""|(?P<path>(?<![\w/.:])/[^\s,;"'`<>()]{0,1000})"""
    r"""|(?P<host>(?<![\w@/.-])(?:\*\.)?(?:[a-z0-9][a-z0-9_-]*\.)+[a-z]{2,}(?![\w@]))"""
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
    r"://(?:[^/?#@]*@)?(?P<host>(?:[A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63})(?=[:/?#]|$)"
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
        others: True if the complement is meant: "outside /a".
    """

    kind: str
    value: str
    others: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """Comparison with a number: `<=`, `<`, `>=` or `>`."""

    operator: str
    number: float

    @property
    def opposite(self) -> Bound:
        """Return the negated comparison."""
        return Bound(_OPPOSITE[self.operator], self.number)


@dataclass(frozen=True, slots=True)
class Read:
    """Clause with its literals extracted.

    Attributes:
        text: the clause with a placeholder for each literal and bound.
        literals: the literals, in order.
        bound: the comparison; None without one.
    """

    text: str
    literals: tuple[Literal, ...]
    bound: Bound | None


def read(clause: str) -> Read:
    """Extract the literals and the bound of a clause."""
    literals: list[Literal] = []
    text = ""
    end = 0
    for match in _LITERAL.finditer(clause):
        kind, value = _value(match)
        before = clause[end : match.start()]
        excepted = _BUT_THESE.search(before)
        joined = bool(literals) and _JOINED.fullmatch(before) is not None
        literals.append(Literal(kind, value, literals[-1].others if joined else excepted is not None))
        text += f"{before[: excepted.start()] if excepted else before} {PLACE} "
        end = match.start() + len(match.group().rstrip(_TRAILING))
    text += clause[end:]
    bound, text = _bound(text)
    return Read(text, tuple(literals), bound)


def _value(match: re.Match[str]) -> tuple[str, str]:
    quoted = match["quoted"] or match["curly"]
    if quoted is not None:
        inner = _LITERAL.fullmatch(quoted)
        return _value(inner) if inner and not inner["quote"] else ("name", quoted)
    text = match.group().rstrip(_TRAILING)
    if match["url"]:
        host = _HOST_IN_URL.search(text)
        return ("domain", host["host"]) if host else ("name", text)
    if match["email"]:
        return "email", text if not text.startswith("@") else f"*{text}"
    if match["list"]:
        return "list", text
    return ("path", text) if match["path"] else ("domain", text)


def _bound(text: str) -> tuple[Bound | None, str]:
    for match in _BOUND.finditer(text):
        number = _NUMBER.match(text, match.end())
        if number:
            value = float(number[1].replace(",", "").replace("_", ""))
            whole = int(value) if value.is_integer() else value
            kind = next(name for name, found in match.groupdict().items() if found)
            return Bound(_OPERATORS[kind], whole), f"{text[: match.start()]} {text[number.end() :]}"
    return None, text
