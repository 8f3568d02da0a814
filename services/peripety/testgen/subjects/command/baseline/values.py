"""Values that the sources of a program treat differently from their neighbours.

They are the constants of comparisons and calculations with their neighbours, the texts that are compared,
searched or replaced, texts that match a regular expression or nearly do, the members of tables, texts as long
as a length that is compared, texts that a used method treats in its own way, and the arguments and quoted
texts of the documentation. Each value belongs to the functions that use it.

Texts that a regular expression matches, and near misses, from its syntax tree.

Two texts follow the first alternative: one with the smallest repetitions, one with all optional parts. Each
further text differs from one of them in one choice: another alternative, one repetition more, the most
repetitions, another member of a class. Within another alternative, there is one further choice. Near misses
differ in one place that the expression does not allow: a repetition too few or too many, or a part that is
missing, doubled, foreign or in another place.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
import warnings
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, combinations, islice, zip_longest
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.testgen.subjects.command.baseline.script_tests import ScriptFunctions
    from peripety.testgen.subjects.command.python_mutants import PythonModule


parser: Any = importlib.import_module("re._parser")  # it has no public name

_MAX_TEXTS = 32
_MAX_NEAR_MISSES = 48
_MAX_CHOICES = 64
_READABLE = "ba1 X0z9-_.:/@é"
_CATEGORY_CHARACTERS = {
    "CATEGORY_DIGIT": "1079",
    "CATEGORY_SPACE": " \t",
    "CATEGORY_WORD": "ab_1",
    "CATEGORY_NOT_DIGIT": "a-",
    "CATEGORY_NOT_SPACE": "a1",
    "CATEGORY_NOT_WORD": "- ",
}
_FOREIGN = "é~0 A-"
_REPEATS = {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}
_MAX_REPETITIONS = 3
_MAX_BOUND = 80
"""Limit of the repetitions of a part whose bounds are tried."""


def iterate_matches(pattern: str) -> Iterator[str]:
    """Yield different texts that a regular expression matches, as a search, in a stable order.

    Args:
        pattern: the expression; nothing is yielded for an invalid one.
    """
    compiled = _compile(pattern)
    if compiled is None:
        return
    seen: dict[str, None] = {}
    for text in _iterate_choices(compiled):
        if text and text not in seen and compiled.search(text) is not None:
            seen[text] = None
            yield text
            if len(seen) >= _MAX_TEXTS:
                return


def iterate_near_misses(pattern: str) -> Iterator[str]:
    """Yield texts that differ from a matching one in a place, in a stable order.

    They include texts that still match, in another place: an expression without anchors allows it.
    """
    compiled = _compile(pattern)
    if compiled is None:
        return
    matches = [*islice(iterate_matches(pattern), 4)]
    seen = dict.fromkeys(matches)
    edits = chain.from_iterable(map(_iterate_edits, matches))
    for text in chain(_iterate_beyond_bounds(compiled), edits):
        if text not in seen:
            seen[text] = None
            yield text
            if len(seen) >= _MAX_NEAR_MISSES:
                return


def _compile(pattern: str) -> re.Pattern[str] | None:
    with suppress(re.error, RecursionError, OverflowError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(pattern)
    return None


def _parse(compiled: re.Pattern[str]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parser.parse(compiled.pattern, compiled.flags & ~re.UNICODE)


def _iterate_choices(compiled: re.Pattern[str]) -> Iterator[str]:
    tree = _parse(compiled)
    first = ""
    deeper: list[tuple[dict[int, int], int, bool]] = []
    for is_full in (False, True):
        base = _Writer(is_full=is_full)
        text = base.write(tree)
        first = first or text
        yield text
        counts = base.counts[:_MAX_CHOICES]
        # The second choice of each place comes before the third one of any, and parts before characters.
        order = sorted(range(len(counts)), key=base.members.__contains__)
        for choice in range(max(counts, default=0)):
            for place in order:
                if choice < counts[place]:
                    writer = _Writer({place: choice}, is_full=is_full)
                    yield writer.write(tree)
                    if len(writer.counts) != len(base.counts):
                        ends = min(len(writer.counts), _MAX_CHOICES)
                        deeper += [({place: choice, one: 1}, one, is_full) for one in range(place + 1, ends)]
    # Another alternative has places of its own.
    for choices, _, is_full in sorted(deeper, key=lambda one: one[1]):
        yield _Writer(choices, is_full=is_full).write(tree)
    if compiled.flags & re.IGNORECASE:
        yield first.upper()


def _iterate_beyond_bounds(compiled: re.Pattern[str]) -> Iterator[str]:
    """Yield texts with one repetition less than the least number of a part, or one more than the most."""
    tree = _parse(compiled)
    for is_full in (True, False):
        base = _Writer(is_full=is_full)
        base.write(tree)
        for place, count in base.beyond[:_MAX_CHOICES]:
            yield _Writer(repetitions={place: count}, is_full=is_full).write(tree)


def _iterate_edits(text: str) -> Iterator[str]:
    """Yield a text with one place changed; the same change at all places before another one."""
    parts = [(text[:place], letter, text[place + 1 :]) for place, letter in enumerate(text)]
    yield from (f"{text}x", f"x{text}")
    for before, letter, after in parts:
        if letter.isdecimal() and not before[-1:].isdecimal():
            yield f"{before}0{letter}{after}"
    yield from (f"x{text}x", f"{text} ", f"{text}\n", f"{text}{text}", text.swapcase())
    for before, _, after in parts:
        yield before + after
    for before, letter, after in parts:
        if not letter.isalnum():
            yield f"{before}{letter}{letter}{after}"
    for before, letter, after in parts:
        foreign = next((one for one in _FOREIGN if one != letter and not letter.isdecimal()), "a")
        yield before + foreign + after


@dataclass
class _Writer:
    """Writer of one text: the choice at each place, the first one by default; all optional parts if full.

    Repetitions at a place override its choice, and may be outside of its bounds.
    """

    choices: dict[int, int] = field(default_factory=dict)
    is_full: bool = False
    repetitions: dict[int, int] = field(default_factory=dict)
    beyond: list[tuple[int, int]] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    members: set[int] = field(default_factory=set)
    """The places of members of classes."""

    groups: dict[int, str] = field(default_factory=dict)

    def write(self, tree: Any) -> str:
        """Return the text of a syntax tree."""
        return "".join(self._write_node(str(code), value) for code, value in tree)

    def _choose(self, count: int, default: int = 0) -> int:
        self.counts.append(count)
        return min(self.choices.get(len(self.counts) - 1, default), count - 1)

    def _write_node(self, code: str, value: Any) -> str:
        text = ""  # of places, and of conditions on the text around
        match code:
            case "LITERAL":
                text = chr(value)
            case "NOT_LITERAL":
                text = next(one for one in _READABLE if ord(one) != value)
            case "ANY":
                text = "a"
            case "IN":
                text = self._write_class(value)
            case "BRANCH":
                branches = value[1]
                text = self.write(branches[self._choose(len(branches))])
            case "SUBPATTERN":
                text = self.write(value[-1])
                self.groups[value[0]] = text
            case "ATOMIC_GROUP":
                text = self.write(value)
            case "GROUPREF":
                text = self.groups.get(value, "")
            case _ if code in _REPEATS:
                text = self._write_repeat(*value)
        return text

    def _write_repeat(self, least: int, most: Any, tree: Any) -> str:
        place, limit = len(self.counts), int(most)
        counts = [*range(least, min(limit, least + _MAX_REPETITIONS - 1) + 1)]
        if counts[-1] < limit <= _MAX_BOUND:
            counts.insert(2, limit)
        if least:
            self.beyond.append((place, least - 1))
        if limit <= _MAX_BOUND:
            self.beyond.append((place, limit + 1))
        count = counts[self._choose(len(counts), int(self.is_full and not least))]
        count = self.repetitions.get(place, count)
        return "".join(self.write(tree) for _ in range(count))

    def _write_class(self, members: Any) -> str:
        self.members.add(len(self.counts))
        if members and str(members[0][0]) == "NEGATE":
            excluded = "".join(map(_characters_of, members[1:]))
            allowed = [one for one in _READABLE if one not in excluded] or ["\N{BULLET}"]
            return allowed[self._choose(min(len(allowed), 3))]
        characters = [*dict.fromkeys("".join(map(_characters_of, members)))] or [""]
        return characters[self._choose(min(len(characters), 6))]


def _characters_of(member: Any) -> str:
    """Return the first characters of a member of a class, and the last one.

    A range of digits begins with 1, because a number or a date of zeros is often not valid.
    """
    code, value = str(member[0]), member[1]
    if code == "LITERAL":
        return chr(value)
    if code == "RANGE":
        low, high = value
        if (chr(low), chr(high)) == ("0", "9"):
            return _CATEGORY_CHARACTERS["CATEGORY_DIGIT"]
        return "".join(map(chr, dict.fromkeys((low, min(low + 1, high), min(high, sys.maxunicode)))))
    return _CATEGORY_CHARACTERS.get(str(value), "a")


MAX_TEXT = 120
_MAX_NUMBER = 10**30
_MAX_NUMBERS_OF_STATEMENT = 6
_MAX_PATTERN_TEXTS = 10
_MAX_PATTERN_NEAR_MISSES = 14
_MANY_PATTERNS = 12
"""A function that uses more patterns is given fewer texts for each."""

_MAX_QUOTED = 8
# The name of a function and its first argument, if that is a text or a number.
_CALL_PATTERN = re.compile(r"(\w+)\(\s*(?:(\"[^\"\n\\]+\"|'[^'\n\\]+')|(-?\d+(?:\.\d+)?))(?=\s*[,)])")
_QUOTED_PATTERN = re.compile(r"(?<!\w)(``|`|\"|')([^`\"'\n\\]{1,40})\1(?!\w)")
_OF_NUMBERS = ("nan", "-inf", "1e3", ".5", "1_0")
_OF_CASE = ("Ab cD", "ABC", "stra\u00dfe")
_SPECIAL_TEXTS = {
    **dict.fromkeys(("float", "Decimal", "isnan", "is_nan", "isinf", "isfinite", "is_finite"), _OF_NUMBERS),
    "int": ("007", "1_0", " 5 ", "+3"),
    **dict.fromkeys(("isdigit", "isdecimal", "isnumeric"), ("12", "\u00b2", "\u0663", "1a")),
    **dict.fromkeys(("isalpha", "isalnum", "isidentifier"), ("abc", "ab1", "\u00e9", "a b")),
    **dict.fromkeys(("isupper", "islower", "istitle", "upper", "lower", "title", "capitalize"), _OF_CASE),
    **dict.fromkeys(("swapcase", "casefold"), _OF_CASE),
    **dict.fromkeys(("strip", "lstrip", "rstrip", "isspace"), (" ab ", "\tab", "ab\n", "  ")),
    "split": ("ab  cd ef", " ab cd "),
    "splitlines": ("ab\ncd\r\nef\n", "ab\n\ncd"),
}
"""Texts that a function or a method treats differently from others."""

_OF_WHITE_SPACE = {"strip", "lstrip", "rstrip", "split"}
_PATTERN_SIGNS = re.compile(r"[\\\[\](){}|*+?^$]")
# NUL, and replacements that refer to groups of a pattern.
_UNUSABLE_PATTERN = re.compile(r"\0|\\\d|\\g<")
_PATTERN_FUNCTIONS = {
    "compile",
    "match",
    "fullmatch",
    "search",
    "sub",
    "subn",
    "split",
    "findall",
    "finditer",
}


@dataclass(frozen=True, slots=True)
class SourceValue:
    """A value for an argument.

    Attributes:
        text: the value as an argument.
        goal: what the value is for; a test of one value of each goal is enough.
        functions: the first lines of the functions that use it, with the key of their file.
        is_number: True for a number.
        is_of_pattern: True for a text that matches a regular expression, or nearly does.
    """

    text: str
    goal: str
    functions: frozenset[tuple[str, int]]
    is_number: bool = False
    is_of_pattern: bool = False


class SourceFunctions:
    """The functions of a program with the lines of their statements.

    Args:
        modules: the measured files by their key.
    """

    def __init__(self, modules: Mapping[str, PythonModule]) -> None:
        self.trees = {key: ast.parse(module.text) for key, module in modules.items()}
        self._lines: dict[tuple[str, int], range] = {}
        self._users: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self.nodes: list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]] = []
        for key, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    self._add(key, node)

    def _add(self, key: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        place = key, node.lineno
        self.nodes.append((key, node))
        first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
        self._lines[place] = range(first.lineno, (node.end_lineno or first.lineno) + 1)
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                self._users[part.id].add(place)
            elif isinstance(part, ast.Attribute):
                self._users[part.attr].add(place)

    def defining(self, name: str) -> frozenset[tuple[str, int]]:
        """Return the functions of a name, such as a method of several classes."""
        return frozenset((key, node.lineno) for key, node in self.nodes if node.name == name)

    def at_lines(self, places: Iterable[tuple[str, int]]) -> frozenset[tuple[str, int]]:
        """Return the functions with the lines in them."""
        wanted = {*places}
        return frozenset(
            place for place, inner in self._lines.items() if any((place[0], one) in wanted for one in inner)
        )

    def users_of(self, name: str) -> frozenset[tuple[str, int]]:
        """Return the functions that use a name."""
        return frozenset(self._users.get(name, ()))

    def reached(self, lines: Mapping[str, frozenset[int]]) -> frozenset[tuple[str, int]]:
        """Return the functions of which a run executes a line."""
        return frozenset(
            place
            for place, inner in self._lines.items()
            if not lines.get(place[0], frozenset()).isdisjoint(inner)
        )


def find_values(
    functions: SourceFunctions,
    values: Iterable[tuple[str, str, str, str]],
    readme: str = "",
) -> list[SourceValue]:
    """Return the values of a program, each once for its goal.

    Args:
        functions: the functions of the program.
        values: the values of its modules, as in `ProgramInterface`.
        readme: the text of its READMEs.
    """
    found = chain(
        _iterate_example_values(functions, readme),
        chain.from_iterable(_iterate_quoted(key, node) for key, node in functions.nodes),
        chain.from_iterable(_iterate_literals(key, node) for key, node in functions.nodes),
        _iterate_module_values(functions, values),
    )
    return usable_values(found)


def find_pattern_values(
    functions: SourceFunctions | ScriptFunctions,
    patterns: Iterable[tuple[str, int, str]],
    known: Iterable[SourceValue],
) -> list[SourceValue]:
    """Return the values of regular expressions that calls have used, without the known ones.

    They include expressions that a program builds when it runs.

    Args:
        functions: the functions of the program.
        patterns: key of the file, line and expression, as in `SurveyedCall`.
        known: values that have been found before.
    """
    places: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for key, line, pattern in patterns:
        places[pattern].add((key, line))
    users = {pattern: functions.at_lines(lines) for pattern, lines in places.items()}
    counts = Counter(users.values())
    groups = [pattern_values(pattern, own, counts[own]) for pattern, own in users.items() if own]
    seen = {value.text for value in known}
    rows = chain.from_iterable(zip_longest(*groups))
    return [one for one in usable_values(one for one in rows if one is not None) if one.text not in seen]


def usable_values(found: Iterable[SourceValue]) -> list[SourceValue]:
    """Return the values that can be an argument, each once for its functions."""
    unique: dict[tuple[str, frozenset[tuple[str, int]]], SourceValue] = {}
    for value in found:
        is_usable = 0 < len(value.text) <= MAX_TEXT and not _UNUSABLE_PATTERN.search(value.text)
        if is_usable:
            unique.setdefault((value.text, value.functions), value)
    return [*unique.values()]


def _iterate_example_values(functions: SourceFunctions, readme: str) -> Iterator[SourceValue]:
    """Yield the texts and numbers that the documentation shows as the first argument of a function."""
    docstrings = (ast.get_docstring(node) or "" for _, node in functions.nodes)
    for name, text, number in _CALL_PATTERN.findall("\n".join([*docstrings, readme])):
        users = functions.defining(name)
        if users:
            value = text[1:-1] or number
            yield SourceValue(value, f"example of {name} {value}", users, is_number=bool(number))


def _iterate_quoted(key: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[SourceValue]:
    """Yield the texts that the docstring of a function quotes."""
    place = frozenset({(key, function.lineno)})
    own = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
    found = _QUOTED_PATTERN.findall(ast.get_docstring(function) or "")
    for text in [*dict.fromkeys(one for _, one in found if one not in own)][:_MAX_QUOTED]:
        yield SourceValue(text, f"quoted {text!r}", place)


def _iterate_module_values(
    functions: SourceFunctions,
    values: Iterable[tuple[str, str, str, str]],
) -> Iterator[SourceValue]:
    by_name: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for _, name, kind, value in values:
        by_name[name].append((kind, value))
    groups: list[Iterator[SourceValue]] = []
    for name, parts in by_name.items():
        users = functions.users_of(name)
        if not users:
            continue
        patterns = [value for kind, value in parts if kind == "pattern" or is_pattern(kind, value)]
        for kind, value in parts:
            if kind == "number":
                yield from number_values(to_number(value), f"{name} {value}", users)
            elif value not in patterns:
                yield SourceValue(value, f"{name} {value}", users)
        groups += [pattern_values(pattern, users, len(patterns)) for pattern in patterns]
    # The first text of each pattern comes before the second one of any.
    for row in zip_longest(*groups):
        yield from (value for value in row if value is not None)


def is_pattern(kind: str, value: str) -> bool:
    """Return True if a value is the text of a regular expression."""
    if kind != "text" or len(_PATTERN_SIGNS.findall(value)) < 2:  # noqa: PLR2004 - one is in many texts
        return False
    return _compile(value) is not None


def pattern_values(pattern: str, users: frozenset[tuple[str, int]], count: int = 1) -> Iterator[SourceValue]:
    """Yield texts that match a pattern and near misses in turn."""
    share = 1 if count <= _MANY_PATTERNS else 4
    matches = islice(iterate_matches(pattern), _MAX_PATTERN_TEXTS // share)
    near_misses = islice(iterate_near_misses(pattern), _MAX_PATTERN_NEAR_MISSES // share)
    for number, (match, near_miss) in enumerate(zip_longest(matches, near_misses)):
        if match is not None:
            yield SourceValue(match, f"match {number} of {pattern}", users, is_of_pattern=True)
        if near_miss is not None:
            yield SourceValue(near_miss, f"near miss {number} of {pattern}", users, is_of_pattern=True)


def _iterate_literals(key: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[SourceValue]:
    place = frozenset({(key, function.lineno)})
    has_power = False
    numbers: dict[int | float, None] = {}
    for statement in _iterate_statements(function.body):
        own = [*dict.fromkeys(_iterate_numbers(statement))]
        numbers.update(dict.fromkeys(own))
        has_power |= any(
            isinstance(node, ast.Pow | ast.Mult | ast.Div) for node in _walk_statement(statement)
        )
        where = f"{key}:{statement.lineno}"
        for number in own:
            yield from number_values(number, f"{where} {number}", place)
        for one, other in combinations(own[:_MAX_NUMBERS_OF_STATEMENT], 2):
            yield _number_value(one + other, f"{where} {one}+{other}", place)
            if isinstance(one, int) and isinstance(other, int):
                yield _number_value(one * other, f"{where} {one}*{other}", place)
        yield from _iterate_texts(statement, where, place)
    if has_power:
        for number in numbers:
            if number >= 10:  # noqa: PLR2004 - powers of small numbers are found otherwise
                yield from number_values(number**2, f"{key}:{function.lineno} {number}^2", place)
                yield from number_values(number**3, f"{key}:{function.lineno} {number}^3", place)


def _iterate_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements and those within them, without functions and classes."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        yield statement
        for part in ("body", "orelse", "finalbody"):
            yield from _iterate_statements(getattr(statement, part, ()))
        for handler in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _iterate_statements(handler.body)


def _walk_statement(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement, without those of statements within it."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop(0)
        yield node
        waiting += [
            part
            for part in ast.iter_child_nodes(node)
            if not isinstance(part, ast.stmt | ast.ExceptHandler | ast.match_case)
        ]


def _iterate_numbers(statement: ast.stmt) -> Iterator[int | float]:
    for node in _walk_statement(statement):
        match node:
            case ast.BinOp(op=ast.Pow(), left=ast.Constant(int(base)), right=ast.Constant(int(exponent))):
                if abs(base) <= 1024 and 0 <= exponent <= 12:  # noqa: PLR2004 - others are too large
                    yield base**exponent
            case ast.Constant(bool()):
                continue
            case ast.Constant(int(number) | float(number)):
                yield number


def number_values(
    number: float,
    goal: str,
    users: frozenset[tuple[str, int]],
) -> Iterator[SourceValue]:
    """Yield a number, its neighbours, and its opposite."""
    for value, what in ((number, ""), (number + 1, " + 1"), (number - 1, " - 1"), (-number, " negative")):
        if abs(value) <= _MAX_NUMBER:
            yield _number_value(value, f"{goal}{what}", users)


def _number_value(number: float, goal: str, users: frozenset[tuple[str, int]]) -> SourceValue:
    return SourceValue(str(number), goal, users, is_number=True)


def to_number(text: str) -> int | float:
    """Return the number that a text is."""
    return int(text) if text.removeprefix("-").isdecimal() else float(text)


def _iterate_texts(
    statement: ast.stmt, where: str, place: frozenset[tuple[str, int]]
) -> Iterator[SourceValue]:
    for node in _walk_statement(statement):
        for text in _iterate_special(node):
            yield SourceValue(text, f"{where} {text!r}", place)
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=[first, *_]):
                for text in _constant_texts(first):
                    if name in _PATTERN_FUNCTIONS and is_pattern("text", text + "()"):
                        yield from pattern_values(text, place)
                    elif text:
                        for number, value in enumerate(iterate_around(text)):
                            yield SourceValue(value, f"{where} {text!r} {number}", place)


def _iterate_special(node: ast.AST) -> Iterator[str]:
    """Yield texts that are compared or looked up, as long as a compared length, or special to a method."""
    match node:
        case ast.Compare(left=ast.Call(func=ast.Name(id="len")), comparators=others):
            for other in others:
                if isinstance(other, ast.Constant) and isinstance(other.value, int):
                    for length in range(max(other.value - 1, 1), min(other.value + 1, MAX_TEXT) + 1):
                        yield ("1234567890" * MAX_TEXT)[:length]
                        yield ("abcdefghij" * MAX_TEXT)[:length]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments):
            # A method such as `split` treats white space in its own way if it has no argument.
            if not arguments or name not in _OF_WHITE_SPACE:
                yield from _SPECIAL_TEXTS.get(name, ())
        case ast.Compare(left=left, comparators=others):
            yield from chain.from_iterable(map(_constant_texts, (left, *others)))
        case ast.Dict(keys=keys):
            yield from chain.from_iterable(_constant_texts(one) for one in keys if one is not None)


def _constant_texts(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(str(text)):
            yield text
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            yield from (
                part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


def iterate_around(text: str) -> Iterator[str]:
    """Yield texts with another text at their end, at their beginning, twice inside, and doubled."""
    yield from (f"ab{text}", f"{text}ab", f"ab{text}cd{text}ef", f"ab{text}{text}cd", f"Ab{text}Cd")
