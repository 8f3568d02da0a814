"""Tokens of a sentence: words of the closed classes, literals, bounds, and all other words.

A token has its text, so that every character of a sentence belongs to a token. A character that belongs to
no class becomes a token that no grammar rule accepts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peripety.author.policy_author.sentences import singular
from peripety.engine.policies.types import CONTEXT_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Literal:
    """Literal value.

    Attributes:
        kind: `path`, `domain`, `email`, `list`, `name`, or `identifier` for "c-100" without quotation marks.
        value: the value, as a matcher entry.
    """

    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class NumericBound:
    """Comparison with a number: `<=`, `<`, `>=` or `>`."""

    operator: str
    number: float

    @property
    def negated(self) -> NumericBound:
        """Return the negated comparison."""
        return NumericBound(_OPPOSITE[self.operator], self.number)

    def scaled(self, scale: float) -> NumericBound:
        """Return the comparison in another unit."""
        return NumericBound(self.operator, scale_number(self.number, scale))


@dataclass(frozen=True, slots=True)
class WordToken:
    """Token of a sentence.

    Attributes:
        kind: the terminal of the grammar.
        text: the characters of the sentence.
        literal: the literal; None for words.
        bounds: the comparisons of a numeric phrase; a range has two.
    """

    kind: str
    text: str
    literal: Literal | None = None
    bounds: tuple[NumericBound, ...] = ()


_OPPOSITE = {"<=": ">", ">": "<=", "<": ">=", ">=": "<"}
_NUMERALS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SYMBOLS = {"$": "dollars", "\u20ac": "euros", "\u00a3": "pounds", "\u00a5": "yen", "%": "percent"}
_NO_SYMBOLS = str.maketrans("", "", "".join(_SYMBOLS))
_NUMBER = (
    rf"(?:(?:[$\u20ac\u00a3\u00a5]\s?)?\d[\d,_]{{0,14}}(?:\.\d{{1,9}})?(?:\s?%)?|(?:{'|'.join(_NUMERALS)})\b)"
)
_BOUND_WORDS = {
    "<=": r"at most|no more than|not more than|up to|a maximum of|do(?:es)? not exceed|not exceed(?:ing)?"
    r"|(?:no|not) (?:longer|deeper|larger|higher|greater) than",
    ">=": r"at least|no less than|no fewer than|not less than|a minimum of",
    ">": r"more than|over|above|exceed(?:s|ing)?|(?:greater|larger|higher|longer|deeper) than",
    "<": r"less than|fewer than|under|below|(?:smaller|lower|shorter) than",
}
_BEFORE_NUMBER = re.compile(
    rf"\b(?:{'|'.join(f'(?P<o{place}>{words})' for place, words in enumerate(_BOUND_WORDS.values()))})"
    rf"\s+(?P<number>{_NUMBER})(?![\w@])(?!\.\w)",
    re.IGNORECASE,
)
_AFTER_NUMBER = re.compile(
    rf"(?<![\w.])(?P<number>{_NUMBER})\s+or"
    r"\s+(?:(?P<most>less|fewer|lower|below|under)|(?P<least>more|higher|above|over))\b",
    re.IGNORECASE,
)
_AFTER_UNIT = re.compile(
    rf"(?<![\w.])(?P<number>{_NUMBER})\s+(?P<unit>[A-Za-z]+)\s+"
    r"(?P<words>(?P<most>or\s+(?:less|fewer)|at\s+most)|(?:or\s+more|at\s+least))"
    rf"\b(?!\s+(?:than\b|{_NUMBER}))",
    re.IGNORECASE,
)
"""A bound behind its unit: "10 days at most"."""
_RANGE = re.compile(
    rf"\b(?:between\s+(?P<a>{_NUMBER})\s+and|from\s+(?P<b>{_NUMBER})\s+(?:up\s+)?to|(?P<c>{_NUMBER})\s+to)"
    rf"\s+(?P<most>{_NUMBER})(?![\w@])(?!\.\w)",
    re.IGNORECASE,
)
_PLAIN_NUMBER = re.compile(rf"(?<![\w.])(?P<number>{_NUMBER})(?![\w@])(?!\.\w)")
_LITERAL = re.compile(
    r"""(?:(?P<quote>[`"])(?P<quoted>[^`"\n]{1,500})(?P=quote)|“(?P<curly>[^”\n]{1,500})”)"""
    r"""|(?P<url>[A-Za-z][A-Za-z0-9+.-]*://[^\s,;"'`<>]+)"""
    r"""|(?P<email>[A-Za-z0-9.!#$%&+*_{|}~-]*@(?:\*\.)?(?:[A-Za-z0-9_-]+\.)+[A-Za-z0-9_-]+)"""
    r"""|(?P<list>(?<!\w)@[A-Za-z_][\w-]*)"""
    r"""|(?P<path>(?<![\w/.:])/[^\s,;"'`<>()]{0,1000})"""
    r"""|(?P<host>(?<![\w@/.-])(?:\*\.)?(?:[a-z0-9][a-z0-9_-]*\.)+[a-z]{2,}(?![\w@]))""",
)
_HOST_IN_URL = re.compile(
    r"://(?:[^/?#@]*@)?(?P<host>(?:[A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63})(?=[:/?#]|$)",
)
_TRAILING = ".,:;!?"

_CLASSES = {
    "MUST": "must|shall|should|has to|have to|needs? to",
    "NEED": "needs?|requires?",
    "CANNOT": r"cannot|can['\u2019]t|can not",
    "MAY": "may|can",
    "MUSTNOT": r"mustn['\u2019]t|shouldn['\u2019]t",
    "DONOT": r"do not|don['\u2019]t|does not|doesn['\u2019]t",
    "NEITHER": "neither",
    "NOT": "not|never|(?:under|in) no circumstances|in no case|on no account|at no time",
    "NOR": "nor",
    "SUBJECT_TO": "subject to|up to",
    "ALLOWED": r"allowed|permitted|permissible|fine|okay|ok|feel free"
    r"|(?:welcome|free|authori[sz]ed|entitled)(?=\s+to\b)",
    "POLITE": "please|kindly",
    "FORBIDDEN": "forbidden|prohibited|denied|refused|rejected|disallowed|banned|off[- ]limits",
    "BE": "is|are|be|been|being|was|were",
    "HAVE": "has|have|had|having",
    "NOTHING": "nothing",
    "NOWHERE": "nowhere",
    "NOONE": "nobody|no[- ]one|none",
    "NO": "no",
    "ANYTHING": "anything|everything",
    "EVERYONE": "anyone|anybody|everyone|everybody",
    "ANYWHERE": "anywhere|everywhere",
    "ONLY": "only|solely|exclusively",
    "EXCEPT": "with the exception of|except for|except|apart from|other than",
    "OUTSIDE": "outside of|outside|elsewhere than",
    "UNLESS": "unless",
    "UNTIL": "until",
    "IFF": "if and only if",
    "WHOEVER": "whoever",
    "IF": "if|when|as long as|so long as|provided that|provided",
    "WITHOUT": "without",
    "BEFORE": "before",
    "AFTER": "after",
    "BUT": "but",
    "AND": "and",
    "OR": "or",
    "ADVERB": "always|also|freely|at any time|at all times|at once|as well|too|at will|at all"
    "|under any circumstances|explicitly|expressly",
    "AVOID": "avoid|refuse to|refrain from",
    "LIMITED": "limited|restricted|confined|reserved",
    "EITHER": "either",
    "THOSE": "those|ones",
    "FIRST": "first|beforehand|in advance",
    "PRONOUN": "it|they|them|you|we|i",
    "POSSESSIVE": "its|their|your|our|my|his|her",
    "RELATIVE": "who|that|which|whose",
    "ELSE": "else|other|others|otherwise|remaining",
    "QUANTIFIER": "all|any|every|each|both",
    "DETERMINER": "an|a|the",
    "ASK": "ask|asks|asking",
    "APPROVE": r"approv(?:e|es|ed|al|als|ing)|permissions?|consent(?:s|ed)?|confirm(?:s|ed|ation|ing)?"
    r"|agree[sd]?|authori[sz]ations?|authori[sz]ed|sign-?offs?|signed off|escalated",
    "BY": "by",
    "WITH": "with",
    "TO": "to|into|onto",
    "FROM": "out of|from",
    "PLACE": "below|beneath|under|inside|within|in|on|at|among|of|for|as",
    "SAME": "default",
}
_CLASS = re.compile(
    "|".join(rf"(?P<{name}>\b(?:{words})\b(?![-_\w]))" for name, words in _CLASSES.items()),
    re.IGNORECASE,
)
_ORDINARY = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*(?:_[A-Za-z0-9_]+)?")
_IDENTIFIER = re.compile(r".*(?:_|-[A-Za-z]*\d).*")
_GENITIVE = re.compile(r"['\u2019]s?(?!\w)")
_PUNCTUATION = {",": "COMMA", ";": "SEMICOLON", ":": "COLON"}
_SPLIT = {
    "IFF": ("ONLY", "IF"),
    "WHOEVER": ("EVERYONE", "RELATIVE"),
    "CANNOT": ("MAY", "NOT"),
    "MUSTNOT": ("MUST", "NOT"),
    "NEITHER": ("NOT",),
    "NOR": ("OR",),
}
_OPENING = {"MAY", "MUST", "NOT", "DONOT", "TO"}
_PERSONAL = {"NOONE", "EVERYONE", "ANYWHERE", "ANYTHING", "NOTHING"}


def find_bounds(text: str) -> Iterator[NumericBound]:
    """Yield the comparisons with numbers in a text, in order."""
    for match in _BEFORE_NUMBER.finditer(text):
        yield _bound_before(match)


def read_tokens(sentence: str) -> list[WordToken]:
    """Return the tokens of a sentence, without its final mark."""
    text = sentence.strip()
    text = text[:-1] if text and text[-1] in ".!" else text
    found: list[WordToken] = []
    place = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        tokens, place = _next_tokens(text, place)
        if tokens and tokens[0].kind == "COLON" and found and found[-1].kind in _OPENING:
            # "It may: read files" is an item of a list behind the line that opens it.
            continue
        if tokens and tokens[0].kind == "BUT" and found and found[-1].kind in _PERSONAL:
            tokens = [WordToken("EXCEPT", tokens[0].text)]
        found += tokens
        _join_bounds(found)
    return found


def _join_bounds(tokens: list[WordToken]) -> None:
    """Join "at least 1 and at most 5" at the end of tokens to one range, also with a unit behind each."""
    kinds = [one.kind for one in tokens[-5:]]
    if kinds in (["BOUND", "WORD", "AND", "BOUND", "WORD"], ["BOUND", "WORD", "BUT", "BOUND", "WORD"]):
        first, unit, word, last, other = tokens[-5:]
        if singular(unit.text.casefold()) == singular(other.text.casefold()):
            text = f"{first.text} {unit.text} {word.text} {last.text}"
            tokens[-5:] = [WordToken("BOUND", text, bounds=first.bounds + last.bounds), other]
    if [one.kind for one in tokens[-3:]] in (["BOUND", "AND", "BOUND"], ["BOUND", "BUT", "BOUND"]):
        first, word, last = tokens[-3:]
        text = f"{first.text} {word.text} {last.text}"
        tokens[-3:] = [WordToken("BOUND", text, bounds=first.bounds + last.bounds)]


def _next_tokens(text: str, place: int) -> tuple[list[WordToken], int]:
    """Return the tokens at a place, and the place behind them."""
    literal = _LITERAL.match(text, place)
    if literal:
        value = _read_literal(literal)
        end = place + len(literal.group().rstrip(_TRAILING))
        return [WordToken("NAME" if value.kind == "name" else "VALUE", text[place:end], value)], end
    number = _read_number(text, place)
    if number:
        found, end = number
        # "$5" and "5%" are numbers with a unit.
        units = {unit for symbol, unit in _SYMBOLS.items() if symbol in text[place:end]}
        kind = "WORD" if len(units) == 1 else "UNKNOWN"
        plain = [replace(one, text=one.text.translate(_NO_SYMBOLS)) for one in found]
        return [*plain, *(WordToken(kind, unit) for unit in units)], end
    word = _CLASS.match(text, place)
    if word:
        kind = str(word.lastgroup)
        return [WordToken(one, word.group()) for one in _SPLIT.get(kind, (kind,))], word.end()
    ordinary = _ORDINARY.match(text, place)
    if ordinary:
        kind = "NAME" if _IDENTIFIER.fullmatch(ordinary.group()) else "WORD"
        name_kind = "name" if "_" in ordinary.group() else "identifier"
        named = Literal(name_kind, ordinary.group()) if kind == "NAME" else None
        genitive = _GENITIVE.match(text, ordinary.end())
        end = genitive.end() if genitive else ordinary.end()
        return [WordToken(kind, ordinary.group(), named)], end
    return [WordToken(_PUNCTUATION.get(text[place], "UNKNOWN"), text[place])], place + 1


def _read_number(text: str, place: int) -> tuple[list[WordToken], int] | None:
    between = _RANGE.match(text, place)
    if between:
        least, most = (
            to_number(one) for one in (between["a"] or between["b"] or between["c"], between["most"])
        )
        bounds = (NumericBound(">=", least), NumericBound("<=", most))
        return [WordToken("BOUND", between.group(), bounds=bounds)], between.end()
    before = _BEFORE_NUMBER.match(text, place)
    if before:
        return [WordToken("BOUND", before.group(), bounds=(_bound_before(before),))], before.end()
    after = _AFTER_NUMBER.match(text, place)
    if after:
        bound = NumericBound("<=" if after["most"] else ">=", to_number(after["number"]))
        return [WordToken("BOUND", after.group(), bounds=(bound,))], after.end()
    behind = _AFTER_UNIT.match(text, place)
    if behind and not _CLASS.fullmatch(behind["unit"]):
        bound = NumericBound("<=" if behind["most"] else ">=", to_number(behind["number"]))
        number = WordToken("BOUND", f"{behind['number']} {behind['words']}", bounds=(bound,))
        return [number, WordToken("WORD", behind["unit"])], behind.end()
    plain = _PLAIN_NUMBER.match(text, place)
    if plain and plain["number"].casefold() != "one":
        return [WordToken("NUMBER", plain.group())], plain.end()
    return None


def _bound_before(match: re.Match[str]) -> NumericBound:
    operator = next(one for place, one in enumerate(_BOUND_WORDS) if match[f"o{place}"])
    return NumericBound(operator, to_number(match["number"]))


def to_number(text: str) -> float:
    """Return the value of a number in digits or of a small number in words."""
    if text.casefold() in _NUMERALS:
        return _NUMERALS.index(text.casefold())
    value = float(re.sub(r"[^\d.]", "", text))
    return int(value) if value.is_integer() else value


def scale_number(number: float, scale: float) -> float:
    """Return a number in another unit."""
    value = float(number * scale)
    return int(value) if value.is_integer() else value


def _read_literal(match: re.Match[str]) -> Literal:
    quoted = match["quoted"] or match["curly"]
    if quoted is not None:
        if quoted.startswith(CONTEXT_PREFIX):
            return Literal("name", quoted)
        inner = _LITERAL.fullmatch(quoted)
        return _read_literal(inner) if inner and not inner["quote"] else Literal("name", quoted)
    text = match.group().rstrip(_TRAILING)
    if match["url"]:
        host = _HOST_IN_URL.search(text)
        return Literal("domain", host["host"]) if host else Literal("name", text)
    if match["email"]:
        return Literal("email", text if not text.startswith("@") else f"*{text}")
    if match["list"]:
        return Literal("list", text)
    return Literal("path", text) if match["path"] else Literal("domain", text)
