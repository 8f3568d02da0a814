"""Baseline tests of Python functions: one, or all public ones of a module.

Tests with a source come from examples of the documentation and from laws, for which Hypothesis searches the
simplest arguments that break them. All other tests describe the current behaviour of calls that differ in
what they show. Their arguments are drawn from the type hints, or they are constants of the source.
"""

from __future__ import annotations

import ast
import re
from dataclasses import asdict, replace
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any

from peripety.testgen.subjects.command.baseline.calls import CandidateCall, choose
from peripety.testgen.subjects.command.baseline.expectations import (
    dotted_name,
    iterate_documented_calls,
    laws_of_function,
)
from peripety.testgen.subjects.command.baseline.tests import ProgramExamples, call_test, to_name
from peripety.testgen.subjects.command.baseline.values import SourceFunctions, find_values
from peripety.testgen.subjects.command.python_program import ProgramInput, ProgramInterface, PythonCall
from peripety.testgen.types import DraftTest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.testgen.subjects.command.baseline.expectations import DocumentedCall
    from peripety.testgen.subjects.command.baseline.values import SourceValue
    from peripety.testgen.subjects.command.python_mutants import PythonModule
    from peripety.testgen.subjects.command.python_program import PythonProgram, SurveyedCall


_MAX_OBSERVED = 40
_OBSERVED_OF_FUNCTION = 12
_MAX_OBSERVED_OF_MODULE = 96
_MAX_CALLS = 400
_MAX_CALLS_OF_MODULE = 1_200
_MAX_CONSTANTS = 200
_SURVEY_SECONDS = 8.0
"""Limit of the processor time for trying calls, in seconds."""

_WORD_START_PATTERN = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SIMPLIFY_SECONDS = 3.0
"""Limit of the processor time of a round of simpler constants, in seconds."""

_SIMPLIFY_ROUNDS = 2
_MAX_SIMPLER = 12

_WRONG_TYPE_ERRORS = (b"TypeError", b"AttributeError")


class FunctionTests:
    """The baseline tests of functions.

    Args:
        program: the functions, and the modules that define them.
    """

    def __init__(self, program: PythonProgram) -> None:
        self._program = program
        sources = {dotted_name(module): (key, module) for key, module in program.modules.items()}
        self._functions = [
            _TestedFunction(module, name, *sources[module])
            for module, name in program.functions
            if module in sources
        ]
        if program.is_limited:
            self._functions = [one for one in self._functions if one.uses_lines(program.affected_lines)] or (
                self._functions
            )
        self._is_single = len(self._functions) == 1
        laws = chain.from_iterable(one.laws for one in self._functions)
        self._laws = [*dict.fromkeys(laws)]
        constants = {one.module: one.constants for one in self._functions}
        found = program.survey_functions([asdict(law) for law in self._laws], constants)
        self._results = [one for one in found if "law" in one]
        drawn = {(one["module"], one["function"]): one["calls"] for one in found if "calls" in one}
        for one in self._functions:
            one.drawn = drawn.get((one.module, one.name), [])
        self._interface = ProgramInterface(modules=(*dict.fromkeys(one.module for one in self._functions),))
        documented = iterate_documented_calls(program.modules)
        self._documented = [
            example for example in documented if any(one.is_in(example) for one in self._functions)
        ]

    def __iter__(self) -> Iterator[DraftTest]:
        """Yield all tests, those that a function does not meet first."""
        examples = ProgramExamples(self._program, self._interface, _SURVEY_SECONDS / 2)
        sourced = [*self._law_tests(), *examples.documented_tests(self._documented)]
        yield from (test for test, is_met in sourced if not is_met)
        met = (test for test, is_met in sourced if is_met)
        limit = max(_MAX_OBSERVED, min(_OBSERVED_OF_FUNCTION * len(self._functions), _MAX_OBSERVED_OF_MODULE))
        rows = zip_longest(self._observed_tests(limit), met)
        yield from (test for row in rows for test in row if test is not None)

    def _law_tests(self) -> Iterator[tuple[DraftTest, bool]]:
        """Yield the tests of laws, each with True if the function meets it."""
        for result in self._results:
            law = self._laws[result["law"]]
            for codes, is_met in ((result["missed"], False), (result["held"], True)):
                for code in codes:
                    call = law.of_code(code)
                    if self._program.is_limited and not self._reaches_changes(call.call):
                        continue
                    yield call_test("law", call, code.rpartition("\n")[2], "True", "correctness"), is_met

    def _reaches_changes(self, call: PythonCall) -> bool:
        return self._program.reaches_changes(self._program.executed_lines(ProgramInput(call=call)))

    def _observed_tests(self, most: int) -> Iterator[DraftTest]:
        """Yield tests without an expectation, for calls that differ in what they show."""
        # They have tests with a source already, and show what others need not show again.
        documented = {example.call for example in self._documented}
        rows = zip_longest(*(one.calls(self._documented) for one in self._functions))
        limit = _MAX_CALLS if self._is_single else _MAX_CALLS_OF_MODULE
        calls = [*islice((pair for row in rows for pair in row if pair is not None), limit)]
        given = [ProgramInput(call=call) for _, call in calls]
        results = self._program.survey_calls(self._interface, given, _SURVEY_SECONDS)
        pairs = [
            (function, CandidateCall(one, (function.name,), "", result))
            for (function, _), one, result in zip(calls, given, results, strict=False)
            if function.accepts(result) and self._program.reaches_changes(result.lines)
        ]
        chosen = [*islice(choose([candidate for _, candidate in pairs]), most)]
        for candidate in self._simplified([pairs[index] for index in chosen]):
            call = candidate.given.call
            if call is not None and call not in documented and candidate.result is not None:
                yield _observed_call_test(call, candidate.result)

    def _simplified(self, chosen: Sequence[tuple[_TestedFunction, CandidateCall]]) -> list[CandidateCall]:
        """Return the calls with the simplest constants that show all that the calls before do not show."""
        kept = [candidate for _, candidate in chosen]
        needed: list[frozenset[int]] = []
        shown: set[int] = set()
        for one in kept:
            own = frozenset() if one.result is None else one.result.features
            needed.append(own - shown)
            shown |= own
        for _ in range(_SIMPLIFY_ROUNDS):
            tried = {one.given for one in kept}
            rows = [
                (index, ProgramInput(call=PythonCall(call.module, code)))
                for index, one in enumerate(kept)
                for call in (one.given.call,)
                if call is not None
                for code in islice(_simpler_codes(call.code), _MAX_SIMPLER)
            ]
            new = [*dict.fromkeys(given for _, given in rows if given not in tried)]
            found = self._program.survey_calls(self._interface, new, _SIMPLIFY_SECONDS) if new else ()
            results = dict(zip(new, found, strict=False))
            before = [*kept]
            for index, given in rows:
                old, result = kept[index], results.get(given)
                if old is not before[index] or given in tried or result is None or old.result is None:
                    continue
                is_same_kind = _kind_of_result(old.result) == _kind_of_result(result)
                is_accepted = is_same_kind and chosen[index][0].accepts(result)
                if is_accepted and needed[index] <= result.features:
                    kept[index] = replace(old, given=given, result=result)
                    tried.add(given)
            if kept == before:
                break
        return kept


def _kind_of_result(result: SurveyedCall) -> tuple[int | None, bytes]:
    """Return the exit code, and the class of an exception."""
    return result.exit_code, result.stdout.partition(b":")[0] if result.exit_code else b""


def _simpler_codes(code: str) -> Iterator[str]:
    """Yield a call with one of its constants in a simpler form, or without its last argument."""
    *imports, shown = code.split("\n")
    try:
        tree = ast.parse(shown, mode="eval")
    except SyntaxError:
        return
    call = tree.body
    if isinstance(call, ast.Call) and call.args and not call.keywords:
        *call.args, last = call.args
        yield "\n".join([*imports, ast.unparse(tree)])
        call.args.append(last)
    signed = {id(node.operand) for node in ast.walk(tree) if isinstance(node, ast.UnaryOp)}
    for node in [*ast.walk(tree)]:
        match node:
            case ast.Constant(bool() | None) | ast.Constant(bytes()):
                continue
            case ast.Constant(int() | float() | str() as value):
                for simpler in _simpler_values(value, is_signed=id(node) in signed):
                    node.value = simpler
                    yield "\n".join([*imports, ast.unparse(tree)])
                node.value = value


def _simpler_values(value: float | str, *, is_signed: bool) -> Iterator[float | str]:
    """Yield the simpler values, the simplest first."""
    if isinstance(value, str):
        others: list[Any] = ["", "a", value[: len(value) // 2], value[len(value) // 2 :]]
        yield from dict.fromkeys(one for one in others if len(one) < len(value))
        return
    numbers: list[float] = [1, 2, 10] if is_signed else [0, 1, 2, 3, 10, 100, 1000]
    if isinstance(value, float):
        numbers = [*map(float, numbers), 0.5, 1.5]
    shorter = round(value, -(len(str(abs(int(value)))) - 1))
    known = [one for one in [*numbers, shorter] if abs(one) < abs(value) and len(str(one)) <= len(str(value))]
    yield from dict.fromkeys(known)


class _TestedFunction:
    """A function or a class with the values for its arguments.

    Args:
        module: the module that defines it.
        name: its name.
        key: the key of the file of the module.
        source: the file.

    Attributes:
        module: the module that defines it.
        name: its name.
        laws: its laws.
        constants: the constants of its file, its own ones first.
        drawn: drawn calls, the shortest first.
        is_typed: True if all parameters have a type hint, so that each drawn value is an intended one.
    """

    def __init__(self, module: str, name: str, key: str, source: PythonModule) -> None:
        self._source = source
        self._key = key
        self.module = module
        self.name = name
        self.laws = laws_of_function(source, name)
        self.drawn: list[str] = []
        functions = SourceFunctions({name: source})
        node = next((node for _, node in functions.nodes if node.name == name), None)
        own = set() if node is None else {(name, node.lineno)}
        values = sorted(find_values(functions, ()), key=lambda one: own.isdisjoint(one.functions))
        self.constants = [_to_constant(one) for one in values][:_MAX_CONSTANTS]
        self.is_typed = node is not None and all(
            one.annotation is not None
            for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        )

    def accepts(self, result: SurveyedCall) -> bool:
        """Return True for a result that a test may expect: not the text of an error of the interpreter."""
        if result.exit_code is None or result.accident:
            return False
        return self.is_typed or not result.stdout.startswith(_WRONG_TYPE_ERRORS)

    def uses_lines(self, lines: Mapping[str, frozenset[int]]) -> bool:
        """Return True if it uses one of the lines of its file, or if all lines are in other files."""
        own = lines.get(self._key)
        return own is None or not own.isdisjoint(self._source.lines_of_function(self.name))

    def is_in(self, example: DocumentedCall) -> bool:
        """Return True for an example of the function, or one that calls it."""
        names = (node.id for node in ast.walk(ast.parse(example.call.code)) if isinstance(node, ast.Name))
        is_own = example.call.module == self.module and example.function.partition(".")[0] == self.name
        return is_own or self.name in names

    def calls(self, documented: list[DocumentedCall]) -> Iterator[tuple[_TestedFunction, PythonCall]]:
        """Yield the calls to try: documented ones, those with constants of the source, and drawn ones."""
        own = (one.call for one in documented if self.is_in(one))
        codes = chain(self._constant_codes(), self.drawn)
        made = (PythonCall(self.module, code) for code in codes)
        yield from ((self, call) for call in dict.fromkeys(chain(own, made)))

    def _constant_codes(self) -> Iterator[str]:
        """Yield the shortest drawn call with each constant of the function in place of each argument."""
        base = next((code for code in self.drawn if code.count("(") and "\n" not in code), None)
        if base is None:
            return
        call = ast.parse(base, mode="eval").body
        if not isinstance(call, ast.Call):
            return
        shown = [ast.unparse(one) for one in call.args]
        for constant in self.constants:
            for place, node in enumerate(call.args):
                if isinstance(node, ast.Constant) and type(node.value) is type(constant):
                    parts = [*shown[:place], repr(constant), *shown[place + 1 :]]
                    yield f"{ast.unparse(call.func)}({', '.join(parts)})"


def _observed_call_test(call: PythonCall, result: SurveyedCall) -> DraftTest:
    """Return a test of a call without an expectation."""
    shown = call.code.rpartition("\n")[2]
    body: dict[str, Any] = {
        "arguments": [],
        "stdin": "",
        "exit_code": None,
        "call": {"module": call.module, "code": call.code},
    }
    name = to_name(shown)
    if result.exit_code:
        error = result.stdout.decode(errors="replace").partition(":")[0].strip()
        name += f"_raises_{to_name(_WORD_START_PATTERN.sub(' ', error))}"
    category = "boundary" if result.exit_code else "correctness"
    return DraftTest(name, f"{call.module}: {shown}", None, "", 1.0, body, category)


def _to_constant(value: SourceValue) -> str | int | float:
    if not value.is_number:
        return value.text
    try:
        return int(value.text)
    except ValueError:
        return float(value.text)
