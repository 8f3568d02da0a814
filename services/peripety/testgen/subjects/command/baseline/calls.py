"""CandidateCall calls of a program, and the choice of those that differ in what they show.

A first survey tries every command with usual values, and shows which functions it reaches. A second one tries
the values of these functions, one place at a time, and then options and pairs with the values that have shown
something new. The choice is greedy: the next call is the one with the most features that no call has shown.

Commands of a program with their parameters, and values for parameters by their type.

Programs that define parsers report them. For others, the names of commands are the texts that the program
compares or looks up, and the number of arguments is tried.
"""

from __future__ import annotations

import ast
import re
import zlib
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, islice, zip_longest
from typing import TYPE_CHECKING, Any

from peripety.testgen.subjects.command.baseline.values import find_pattern_values
from peripety.testgen.subjects.command.python_program import ProgramInput

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from peripety.testgen.subjects.command.baseline.script_tests import ScriptFunctions
    from peripety.testgen.subjects.command.baseline.values import SourceFunctions, SourceValue
    from peripety.testgen.subjects.command.javascript_program import JavaScriptProgram
    from peripety.testgen.subjects.command.python_program import PythonProgram, SurveyedCall


_NUMBERS = ("1", "0", "2", "10", "11", "100", "-1", "-2", "1000", "1000000", "1.5", "x")
TEXTS = (
    "ab",
    "1",
    "Ab Cd",
    "ab_cd",
    "1.2.3",
    "10",
    "",
    "ab-cd",
    "a,b",
    "é",
    "-1",
    "2001-02-03",
    "1,2",
    "a=b",
)
_NUMERIC_TYPES = {"int", "float", "integer", "float range", "integer range", "complex", "Decimal"}
_FILE_TYPES = {"FileType", "filename", "file", "path", "directory", "Path"}
_INPUT_FILES = {
    "input.txt": "ab cd\n1 2\n\nab: 3.5\n",
    "input.json": '{"ab": [1, 2.5, null], "cd": {"e": "f"}}\n',
    "input.csv": "ab,cd\n1,x\n2,\n",
    "input.py": "import os\n\n\ndef ab(cd, *, e=1):\n    return [cd + e, 'f']\n",
    "empty.txt": "",
}
"""Files that a call may read, if the directory has none of its kind."""

_MAX_COMMANDS = 24
_MAX_FILTERS = 4
_MAX_TRIED_ARGUMENTS = 3
_MANY_VALUES = 3


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a command.

    Attributes:
        flag: the name of an option; empty for an argument.
        is_flag: True for an option without a value.
        is_required: True if a call without it is not valid.
        is_number: True if it accepts numbers only.
        values: values that follow from its definition, the most usual first.
        count: the number of values that it takes.
        is_file: True for the name of a file.
        is_many: True if it takes any number of values.
        has_choices: True if it takes no other values.
        is_text: False if it accepts names of files only.
    """

    flag: str
    is_flag: bool
    is_required: bool
    is_number: bool
    values: tuple[str, ...]
    count: int = 1
    is_file: bool = False
    is_many: bool = False
    has_choices: bool = False
    is_text: bool = True

    def words_at(self, row: int) -> tuple[str, ...]:
        """Return the words of an option with its value at a row, and the next values if it takes several."""
        values = self.values or ("ab",)
        return self.flag, *(values[min(row + place, len(values) - 1)] for place in range(self.count))


@dataclass(frozen=True, slots=True)
class CommandForm:
    """A command of a program.

    Attributes:
        path: the names of its subcommands.
        arguments: its arguments, in order.
        options: its options.
        is_guessed: True if the number of arguments is not known.
        is_filter: True for a call without arguments, which may read its standard input.
    """

    path: tuple[str, ...]
    arguments: tuple[Parameter, ...] = ()
    options: tuple[Parameter, ...] = ()
    is_guessed: bool = False
    is_filter: bool = False


def find_commands(
    parsers: Sequence[Mapping[str, Any]],
    trees: Iterable[ast.AST],
    files: Sequence[str],
) -> list[CommandForm]:
    """Return the commands of a program.

    Args:
        parsers: the commands that it reports, as in `ProgramInterface`.
        trees: the syntax trees of its sources.
        files: names of files in its directory, as values of parameters for files.
    """
    if parsers:
        leaves = [one for one in parsers if not one["is_group"]] or [*parsers]
        forms = [form for one in leaves for form in _split_choices(_form_of(one, files))]
        filters = [
            replace(form, arguments=(), is_filter=True)
            for form in forms
            if not any(one.is_required for one in form.arguments)
        ]
        return [*forms[:_MAX_COMMANDS], *filters[:_MAX_FILTERS]]
    words = [*dict.fromkeys(word for tree in trees for word in _iterate_words(tree))][: _MAX_COMMANDS - 1]
    free = tuple(_free_parameter(files) for _ in range(_MAX_TRIED_ARGUMENTS))
    return [
        CommandForm((), free, is_guessed=True),
        CommandForm((), is_guessed=True, is_filter=True),
        *(CommandForm((word,), free, is_guessed=True) for word in words),
    ]


def _form_of(command: Mapping[str, Any], files: Sequence[str]) -> CommandForm:
    parameters = [_parameter_of(one, files) for one in command["parameters"] if not _is_help(one)]
    return CommandForm(
        tuple(command["path"]),
        tuple(one for one in parameters if not one.flag),
        tuple(one for one in parameters if one.flag),
    )


def _is_help(parameter: Mapping[str, Any]) -> bool:
    return bool({"--help", "-h", "--version", "--install-completion"} & {*parameter["flags"]})


def _parameter_of(parameter: Mapping[str, Any], files: Sequence[str]) -> Parameter:
    kind, name = parameter["type"], parameter["name"] or ""
    is_number = kind in _NUMERIC_TYPES
    values = [*parameter["choices"]]
    is_file = not values and (kind in _FILE_TYPES or "file" in name or "path" in name)
    # A `path` is not always one of files.
    is_text = kind not in _FILE_TYPES and "file" not in name
    if not values:
        if is_file:
            values = [*files[:6], *_INPUT_FILES, "no-such-file"]
            rows = zip_longest(values, TEXTS if is_text else ())
            values = [one for row in rows for one in row if one is not None]
        elif is_number:
            limits = [int(float(one)) for one in parameter.get("limits", ()) if one]
            values = [str(one + step) for one in limits for step in (0, -1, 1)] + [*_NUMBERS]
        else:
            values = [*filter(None, [parameter["default"]]), *TEXTS]
    flags = sorted(parameter["flags"], key=len)
    return Parameter(
        flags[-1] if flags else "",
        parameter["is_flag"],
        parameter["is_required"],
        is_number,
        tuple(dict.fromkeys(values)),
        parameter["count"],
        is_file,
        parameter.get("is_many", False),
        bool(parameter["choices"]),
        is_text,
    )


def _split_choices(form: CommandForm) -> Iterator[CommandForm]:
    """Yield a command for each choice of its first argument, which is then the name of an operation."""
    first = form.arguments[0] if form.arguments else None
    if first is None or len(form.arguments) < 2 or not first.values or first.values[-1] == TEXTS[-1]:  # noqa: PLR2004
        yield form
        return
    if first.is_number or "no-such-file" in first.values:
        yield form
        return
    for choice in first.values:
        yield CommandForm((*form.path, choice), form.arguments[1:], form.options)


def _free_parameter(files: Sequence[str]) -> Parameter:
    return Parameter("", is_flag=False, is_required=True, is_number=False, values=(*TEXTS, *files[:3]))


def _iterate_words(tree: ast.AST) -> Iterator[str]:
    """Yield texts that can be names of commands: compared ones, choices, and keys of dictionaries."""
    for node in ast.walk(tree):
        match node:
            case ast.Dict(keys=keys):
                yield from _texts(keys)
            case ast.Compare(ops=[ast.Eq() | ast.In()], left=left, comparators=[other]):
                yield from _texts([left, other, *getattr(other, "elts", ())])
            case ast.MatchValue(value=value):
                yield from _texts([value])


def _texts(nodes: Iterable[ast.AST | None]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Constant(str(text)) if text.strip("-").replace("-", "_").isidentifier():
                yield text


_MAX_CALLS = 1_600
_MAX_SEEDS = 8
_MAX_COMBINED = 6
_MAX_EDITED = 12
_MAX_EDITED_WORDS = 24
_LONG_WORD = 11
_WORD_PATTERN = re.compile(r"\d+|[^\W\d_]+|[\W_]")
_MAX_OPTION_VALUES = 6
_MAX_CHOICES = 40
_MAX_COMBINATIONS = 240
_MAX_PROBES = 4
"""Number of texts that show if a command reads an argument."""


_GOAL_NUMBER = re.compile(r"^(match|near miss) \d+|\s\d+$")
"""The part of a goal that differs between the values of one expression, or of one statement."""


@dataclass(frozen=True)
class CandidateCall:
    """A candidate call.

    Attributes:
        given: its input.
        command: the path of its command.
        goal: what its value is for; empty for a usual value.
        result: its result in a survey; None before it.
    """

    given: ProgramInput
    command: tuple[str, ...]
    goal: str = ""
    result: SurveyedCall | None = None

    @cached_property
    def outer_features(self) -> frozenset[int]:
        """Its goal, the source of its goal, such as a regular expression, and its output."""
        if self.result is None:
            return frozenset()
        code, output = self.result.exit_code, self.result.stdout
        # The text of an exception usually repeats the argument, so its kind is the fact.
        is_exception = code != 0 and self.given.call is not None
        fact = output.partition(b":")[0] if is_exception else output
        shown = f"{self.command} {code} {fact[:200]!r}"
        goals = {self.goal, _GOAL_NUMBER.sub(r"\1", self.goal)} - {""}
        return frozenset(
            zlib.crc32(one.encode()) for one in (shown, *(f"{self.command} {one}" for one in goals))
        )

    @property
    def features(self) -> frozenset[int]:
        """The facts that it shows, with those of its goal and its output."""
        return frozenset() if self.result is None else self.result.features | self.outer_features

    def depends_on_changes(self, program: PythonProgram | JavaScriptProgram) -> bool:
        """Return True if it depends on the changed lines of a program; True if whole files are measured."""
        return self.result is None or program.reaches_changes(self.result.lines)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call by its parts."""

    form: CommandForm
    arguments: tuple[str, ...]
    options: tuple[str, ...] = ()
    stdin: str = ""
    content: str | None = None
    """The content of a file that it reads; None for the usual one."""

    def to_candidate(self, goal: str = "") -> CandidateCall:
        # A parser reads an argument that begins with a sign as an option, unless it is a number.
        separator = ("--",) if any(_is_like_option(one) for one in self.arguments) else ()
        given = (*self.form.path, *self.options, *separator, *self.arguments)
        files = tuple(
            (name, (content if self.content is None else self.content).encode())
            for name, content in _INPUT_FILES.items()
            if name in given
        )
        return CandidateCall(ProgramInput(given, self.stdin.encode(), files=files), self.form.path, goal)


def _is_like_option(argument: str) -> bool:
    return argument.startswith("-") and not argument[1:2].isdecimal() and len(argument) > 1


class CandidateCalls:
    """The candidate calls of a program.

    Args:
        forms: its commands.
        functions: its functions.
        values: the values of its sources.
        documented: further values by the path of a command, the best ones.
        survey: runs calls, and returns their results, possibly of the first ones only.
    """

    def __init__(
        self,
        forms: Sequence[CommandForm],
        functions: SourceFunctions | ScriptFunctions,
        values: Sequence[SourceValue],
        documented: Mapping[tuple[str, ...], Sequence[tuple[str, ...]]],
        survey: Callable[[Sequence[ProgramInput]], Sequence[SurveyedCall]],
    ) -> None:
        self._forms = forms
        self._functions = functions
        self._values = values
        self._documented = documented
        self._survey = survey
        self._results: dict[ProgramInput, SurveyedCall] = {}
        self._idle: set[tuple[CommandForm, int]] = set()

    def find(self) -> list[CandidateCall]:
        """Return the calls with their results, in the order in which they were tried."""
        seeds = [(form, call) for form in self._forms for call in self._seed_calls(form)]
        tried = self._run([call.to_candidate() for _, call in seeds])
        of_form: dict[CommandForm, list[tuple[_Call, CandidateCall]]] = defaultdict(list)
        for (form, call), candidate in zip(seeds, tried, strict=False):
            of_form[form].append((call, candidate))
        bases = {form: self._best_of(pairs) for form, pairs in of_form.items() if _is_useful(form, pairs)}
        self._find_idle_places(base for base, _ in bases.values())
        self._add_patterns(tried)
        rows = [self._value_calls(form, *base) for form, base in bases.items()]
        second = _first_of(rows)
        found = [*tried, *self._run([call.to_candidate(goal) for call, goal in second])]
        results = found[len(tried) :]
        known = {*self._values}
        self._add_patterns(results)
        deeper = [self._deeper_calls(form, base, second, results, known) for form, base in bases.items()]
        combined = [self._combined_calls(form, base[0], second, results) for form, base in bases.items()]
        edited = [self._edited_calls(form, base, second, results) for form, base in bases.items()]
        third = zip_longest(_first_of(deeper), _first_of(combined), _first_of(edited))
        found += self._run([one[0].to_candidate(one[1]) for row in third for one in row if one is not None])
        # The rest, for which the time of its survey did not suffice.
        left = [one for one in found if one.result is None]
        return [*(one for one in found if one.result is not None), *self._run(left)]

    def _find_idle_places(self, bases: Iterable[_Call]) -> None:
        """Find the arguments that a command does not read: whatever their value, the run stays the same."""
        probes = [
            (base, place, replace(base, arguments=_with(base.arguments, place, text)))
            for base in bases
            if len(base.arguments) > 1
            for place, _ in enumerate(base.arguments)
            for text in TEXTS[:_MAX_PROBES]
        ]
        shown: dict[tuple[CommandForm, int], set[frozenset[int]]] = defaultdict(set)
        tried = self._run([call.to_candidate() for base, _, probe in probes for call in (base, probe)])
        for (base, place, _), *results in zip(probes, tried[::2], tried[1::2], strict=True):
            shown[base.form, place].update(one.features for one in results)
        idle = {key for key, features in shown.items() if len(features) == 1 and features != {frozenset()}}
        # If no place matters, the usual call fails before it reads them.
        read = {form for form, _ in shown.keys() - idle}
        self._idle = {(form, place) for form, place in idle if form in read}

    def _add_patterns(self, tried: Iterable[CandidateCall]) -> None:
        """Add values of the regular expressions that calls have used."""
        patterns = dict.fromkeys(one for call in tried if call.result for one in call.result.patterns)
        self._values = [*self._values, *find_pattern_values(self._functions, patterns, self._values)]

    def _deeper_calls(
        self,
        form: CommandForm,
        base: tuple[_Call, frozenset[tuple[str, int]]],
        tried: Sequence[tuple[_Call, str]],
        results: Sequence[CandidateCall],
        known: Collection[SourceValue],
    ) -> Iterator[tuple[_Call, str]]:
        """Yield calls with the values of functions that no usual call has reached, beside the best values."""
        pairs = _successes(form, tried, results)
        if pairs:
            best, reached = self._best_of(pairs)
            for value in self._relevant_values(reached | base[1]):
                if value not in known or base[1].isdisjoint(value.functions):
                    yield from self._calls_with(form, best, value)

    def _edited_calls(
        self,
        form: CommandForm,
        base: tuple[_Call, frozenset[tuple[str, int]]],
        tried: Sequence[tuple[_Call, str]],
        results: Sequence[CandidateCall],
    ) -> Iterator[tuple[_Call, str]]:
        """Yield calls whose longest text is one that has shown something new, with one word changed."""
        pairs = _successes(form, tried, results)
        values = [one.text for one in self._relevant_values(base[1])]
        letters = sorted({text for text in values if len(text) == 1})
        # Words as long as a length that is compared.
        lengths = sorted({text for text in values if len(text) >= _LONG_WORD and text.isalpha()})
        best = [pairs[index][0] for index in islice(choose([one for _, one in pairs]), _MAX_EDITED)]
        groups = []
        for call in best:
            place = max(range(len(call.arguments)), key=lambda one: len(call.arguments[one]), default=None)
            if place is None and call.stdin:
                texts = iterate_word_edits(call.stdin, letters, lengths)
                groups.append([replace(call, stdin=one) for one in texts])
            elif place is not None and len(call.arguments[place]) > 1:
                texts = iterate_word_edits(call.arguments[place], letters, lengths)
                groups.append([replace(call, arguments=_with(call.arguments, place, one)) for one in texts])
        yield from ((one, "") for row in zip_longest(*groups) for one in row if one is not None)

    def _run(self, candidates: Sequence[CandidateCall]) -> list[CandidateCall]:
        new = [*dict.fromkeys(one.given for one in candidates if one.given not in self._results)]
        self._results.update(zip(new, self._survey(new) if new else (), strict=False))
        return [replace(one, result=self._results.get(one.given)) for one in candidates]

    def _seed_calls(self, form: CommandForm) -> Iterator[_Call]:
        """Yield calls with usual values: of the documentation, of each type, and too few or too many."""
        required = [one for one in form.options if one.is_required and not one.is_flag]
        options = tuple(part for one in required for part in one.words_at(0))
        for given in self._documented.get(form.path, ())[:_MAX_SEEDS]:
            yield _Call(form, given, options)
        if form.is_filter:
            yield from (_Call(form, (), options, content) for content in _INPUT_FILES.values() if content)
            return
        counts = range(len(form.arguments) + 1) if form.is_guessed else (len(form.arguments),)
        for count in counts:
            places = form.arguments[:count]
            for row in range(_MAX_SEEDS if count else 1):
                yield _Call(form, tuple(_value_at(place, row) for place in places), options)
            if len(places) > 1 and not form.is_guessed:
                # The others have their usual values, such as the default of an optional one.
                rest = tuple(_value_at(place, 0) for place in places[1:])
                yield from (
                    _Call(form, (_value_at(places[0], row), *rest), options)
                    for row in range(1, len(places[0].values))
                )
        if form.arguments and form.arguments[-1].is_many:
            first = tuple(_value_at(place, 0) for place in form.arguments[:-1])
            for row in range(_MAX_SEEDS - _MANY_VALUES):
                # Not in the order of their definition, because a program may sort them.
                many = (
                    _value_at(form.arguments[-1], row + _MANY_VALUES - one) for one in range(_MANY_VALUES)
                )
                yield _Call(form, (*first, *many), options)
        if not form.is_guessed and form.arguments:
            yield _Call(form, (), options)
        if not form.is_guessed and form.arguments and not form.arguments[-1].is_many:
            yield _Call(form, (*(_value_at(place, 0) for place in form.arguments), "x"), options)
        yield _Call(form, tuple(_value_at(place, 0) for place in form.arguments), options, "ab cd\n1 2\n")

    def _value_calls(
        self,
        form: CommandForm,
        base: _Call,
        reached: frozenset[tuple[str, int]],
    ) -> Iterator[tuple[_Call, str]]:
        """Yield calls that differ from a usual one in one value: of its parameter, or of the sources."""
        if form.is_guessed:
            flags = (option.flag for option in form.options if option.is_flag)
            yield from ((replace(base, options=(*base.options, flag)), "") for flag in flags)
        for place in self._places_of(base):
            parameter = form.arguments[min(place, len(form.arguments) - 1)] if form.arguments else None
            own = parameter.values if parameter is not None else ()
            for text in own:
                yield replace(base, arguments=_with(base.arguments, place, text)), ""
        for option in form.options:
            limit = _MAX_CHOICES if option.has_choices else _MAX_OPTION_VALUES
            for row in () if option.is_flag else range(min(limit, len(option.values))):
                words = option.words_at(row)
                yield replace(base, options=(*base.options, *words)), ""
                if not option.has_choices:
                    yield from _calls_around(form, base, words)
        for value in self._relevant_values(reached):
            yield from self._calls_with(form, base, value)

    def _places_of(self, base: _Call) -> list[int]:
        """Return the places of the arguments that the command reads."""
        return [place for place, _ in enumerate(base.arguments) if (base.form, place) not in self._idle]

    def _calls_with(self, form: CommandForm, base: _Call, value: SourceValue) -> Iterator[tuple[_Call, str]]:
        """Yield calls that have a value of the sources in one place, each with its goal."""
        for place in self._places_of(base):
            parameter = form.arguments[min(place, len(form.arguments) - 1)] if form.arguments else None
            if parameter is not None and parameter.is_file:
                file = next((name for name in base.arguments if name in _INPUT_FILES), "input.txt")
                arguments = _with(base.arguments, place, file)
                yield replace(base, arguments=arguments, content=f"{value.text}\n"), value.goal
            if parameter is None or (parameter.is_text and (value.is_number or not parameter.is_number)):
                changed = replace(base, arguments=_with(base.arguments, place, value.text))
                yield changed, value.goal
        if base.stdin:
            yield replace(base, stdin=f"{value.text}\n"), value.goal
        if form.is_filter:
            yield replace(base, stdin=f"ab {value.text}\n1 2.5\n"), ""
        for option in form.options:
            is_allowed = value.is_number or not option.is_number
            if not option.is_flag and not option.has_choices and is_allowed:
                words = (option.flag, *[value.text] * option.count)
                yield replace(base, options=(*base.options, *words)), ""

    def _relevant_values(self, reached: frozenset[tuple[str, int]]) -> Iterator[SourceValue]:
        """Yield the values of the reached functions, of each function in turn, of its patterns first."""
        by_function: dict[tuple[str, int, bool], list[SourceValue]] = defaultdict(list)
        for value in self._values:
            for place in value.functions & reached:
                by_function[*place, value.is_of_pattern].append(value)
        # Functions that many commands reach decide less about this one.
        rows = zip_longest(*by_function.values())
        seen = set()
        for value in (one for row in rows for one in row if one is not None):
            if value.text not in seen:
                seen.add(value.text)
                yield value

    def _combined_calls(
        self,
        form: CommandForm,
        base: _Call,
        tried: Sequence[tuple[_Call, str]],
        results: Sequence[CandidateCall],
    ) -> Iterator[tuple[_Call, str]]:
        """Yield calls that combine values that have shown something new: with options, and in pairs."""
        own = [
            (call, result)
            for (call, _), result in zip(tried, results, strict=False)
            if call.form == form and result.result is not None and result.result.exit_code == 0
        ]
        flags: list[tuple[str, ...]] = [(one.flag,) for one in form.options if one.is_flag]
        for option in form.options:
            limit = min(_MAX_COMBINED if option.has_choices else 1, len(option.values))
            flags += [] if option.is_flag else [option.words_at(row) for row in range(limit)]
        limit = max(2 * _MAX_COMBINED, _MAX_COMBINATIONS // max(len(self._forms) * len(flags), 1))
        best = [own[index][0] for index in islice(choose([result for _, result in own]), limit)]
        if len(base.arguments) > 1 and not {(form, 0), (form, 1)} & self._idle:
            calls = (*best, *(call for call, _ in own))
            # Arguments of one place first: the second one may be of another kind than the first one.
            firsts, seconds = (
                [*dict.fromkeys(call.arguments[place] for call in calls if len(call.arguments) > place)]
                for place in (0, 1)
            )
            mixed = [*dict.fromkeys(text for call in calls for text in call.arguments)]
            for ones, others in ((firsts, seconds), (mixed, mixed)):
                for one in ones[: 2 * _MAX_COMBINED]:
                    for other in others[: 2 * _MAX_COMBINED]:
                        yield replace(base, arguments=(one, other, *base.arguments[2:])), ""
        for call in (base, *best):
            for words in flags:
                if words[0] not in call.options:
                    yield replace(call, options=(*call.options, *words)), ""
        for first, second in islice(combinations(flags, 2), 2 * _MAX_COMBINED):
            yield replace(base, options=(*base.options, *first, *second)), ""

    def _best_of(
        self, pairs: Sequence[tuple[_Call, CandidateCall]]
    ) -> tuple[_Call, frozenset[tuple[str, int]]]:
        """Return the usual call of a command, and the functions that all its calls reach."""
        reached: set[tuple[str, int]] = set()
        for _, candidate in pairs:
            if candidate.result is not None:
                reached |= self._functions.reached(candidate.result.lines)
        # If none of them succeeds, the one with the most arguments leaves the most to try.
        call, _ = max(
            pairs,
            key=lambda pair: (*_rank(pair[1]), len(pair[0].arguments) if pair[0].form.is_guessed else 0),
        )
        return call, frozenset(reached)


def _successes(
    form: CommandForm,
    tried: Sequence[tuple[_Call, str]],
    results: Sequence[CandidateCall],
) -> list[tuple[_Call, CandidateCall]]:
    """Return the calls of a form that ended without an error, with their results."""
    return [
        (call, result)
        for (call, _), result in zip(tried, results, strict=False)
        if call.form == form and result.result is not None and result.result.exit_code == 0
    ]


def _first_of(rows: Sequence[Iterator[tuple[_Call, str]]]) -> list[tuple[_Call, str]]:
    """Return the first calls of each command in turn, with an equal share of the maximum number for each."""
    share = max(_MAX_CALLS // max(len(rows), 1), 20)
    limited = [islice(row, share) for row in rows]
    return [one for row in zip_longest(*limited) for one in row if one is not None][:_MAX_CALLS]


def _calls_around(form: CommandForm, base: _Call, words: tuple[str, ...]) -> Iterator[tuple[_Call, str]]:
    """Yield calls with an option whose arguments are the numbers of the option and their neighbours."""
    numbers = [int(word) for word in words[1:] if word.removeprefix("-").isdecimal()]
    around = [*dict.fromkeys(str(number + step) for number in numbers for step in (0, 1, -1))]
    changed = replace(base, options=(*base.options, *words))
    if form.arguments and form.arguments[-1].is_many:
        first = base.arguments[: len(form.arguments) - 1]
        if around:
            yield replace(changed, arguments=(*first, *around)), ""
    elif base.arguments and form.arguments and not form.arguments[0].has_choices:
        for text in around:
            yield replace(changed, arguments=_with(base.arguments, 0, text)), ""


def iterate_word_edits(text: str, letters: Sequence[str], lengths: Sequence[str] = ()) -> Iterator[str]:
    """Yield a text with one of its words or signs changed, missing or repeated.

    Args:
        text: the text.
        letters: single letters that the program knows, to be put in the place of others.
        lengths: words of other lengths, to be put in the place of others.
    """
    parts = _WORD_PATTERN.findall(text)
    for place, part in enumerate(parts[:_MAX_EDITED_WORDS]):
        before, after = "".join(parts[:place]), "".join(parts[place + 1 :])
        others = ["", part + part]
        if part.isdecimal():
            others = [str(int(part) + 1), "0", f"-{part}", f"{part}.5", f"{part}0", *others]
        elif len(part) == 1 and part.isalpha():
            others = [part.swapcase(), *(one for one in letters if one != part), *others]
        elif part in "+-":
            others = ["-" if part == "+" else "+", *others]
        elif part.isalpha():
            others = [part.swapcase(), part[0], f"{part}s", *lengths, *others]
        yield from (f"{before}{other}{after}" for other in others if before or other or after)


def _is_useful(form: CommandForm, pairs: Sequence[tuple[_Call, CandidateCall]]) -> bool:
    """Return False for a command that does not read its input, because all inputs show the same."""
    shown = {candidate.features for _, candidate in pairs if candidate.result is not None}
    return not form.is_filter or len(shown) > 1


def _rank(candidate: CandidateCall) -> tuple[bool, int]:
    result = candidate.result
    return (False, 0) if result is None else (result.exit_code == 0, len(result.features))


def _value_at(parameter: Parameter, row: int) -> str:
    return parameter.values[min(row, len(parameter.values) - 1)] if parameter.values else "ab"


def _with(arguments: tuple[str, ...], place: int, text: str) -> tuple[str, ...]:
    return (*arguments[:place], text, *arguments[place + 1 :])


def choose(candidates: Sequence[CandidateCall]) -> Iterator[int]:
    """Yield the indices of candidates, each with the most features that no earlier one shows.

    A fact about the run counts twice as much as a goal or an output. Candidates that show nothing new are
    left out.
    """
    left = {
        index: (one.result.features, one.outer_features)
        for index, one in enumerate(candidates)
        if one.result is not None
    }
    shown: set[int] = set()

    def gain_of(index: int) -> int:
        inner, outer = left[index]
        return 2 * len(inner - shown) + len(outer - shown)

    bounds = {index: gain_of(index) for index in left}
    while left:
        best, gain = -1, 0
        for index in sorted(left, key=lambda one: (-bounds[one], one)):
            if bounds[index] <= gain:
                break
            bounds[index] = gain_of(index)
            if bounds[index] > gain or (bounds[index] == gain and gain and index < best):
                best, gain = index, bounds[index]
        if not gain:
            return
        shown.update(*left.pop(best))
        yield best
