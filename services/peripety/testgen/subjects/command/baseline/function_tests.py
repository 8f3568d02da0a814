"""Baseline tests of a Python function.

Tests with a source come from examples of the documentation and from laws, for which Hypothesis searches the
simplest arguments that break them. All other tests describe the current behaviour of calls that differ in
what they show. Their arguments are drawn from the type hints, or they are constants of the source.
"""

from __future__ import annotations

import ast
from dataclasses import asdict
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any

from peripety.testgen.subjects.command.baseline.calls import CandidateCall, choose
from peripety.testgen.subjects.command.baseline.expectations import (
    iterate_documented_calls,
    laws_of_function,
)
from peripety.testgen.subjects.command.baseline.tests import ProgramExamples, call_test, to_name
from peripety.testgen.subjects.command.baseline.values import SourceFunctions, find_values
from peripety.testgen.subjects.command.python_program import ProgramInput, ProgramInterface, PythonCall
from peripety.testgen.types import DraftTest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.testgen.subjects.command.baseline.expectations import DocumentedCall
    from peripety.testgen.subjects.command.baseline.values import SourceValue
    from peripety.testgen.subjects.command.python_program import PythonProgram


_MAX_OBSERVED = 40
_MAX_CALLS = 400
_MAX_CONSTANTS = 200
_SURVEY_SECONDS = 8.0
"""Limit of the processor time for trying calls, in seconds."""

_WRONG_TYPE_ERRORS = (b"TypeError", b"AttributeError")


class FunctionTests:
    """The baseline tests of a function.

    Args:
        program: the module of the function, and the function in its command.
    """

    def __init__(self, program: PythonProgram) -> None:
        self._program = program
        self._module = program.command.program
        self._name = program.command.function
        ((_, source),) = program.modules.items()
        self._source = source
        self._functions = SourceFunctions(program.modules)
        self._laws = laws_of_function(source, self._name)
        literals = find_values(self._functions, ())
        self._constants = [_to_constant(one) for one in literals][:_MAX_CONSTANTS]
        found = program.survey_function([asdict(law) for law in self._laws], self._constants)
        self._results = [one for one in found if "law" in one]
        self._drawn = [code for one in found for code in one.get("calls", ())]
        self._interface = ProgramInterface(modules=(self._module,))
        documented = iterate_documented_calls(program.modules)
        self._documented = [one for one in documented if self._is_about(one)]

    def __iter__(self) -> Iterator[DraftTest]:
        """Yield all tests, those that the function does not meet first."""
        examples = ProgramExamples(self._program, self._interface, _SURVEY_SECONDS / 2)
        sourced = [*self._law_tests(), *examples.documented_tests(self._documented)]
        yield from (test for test, is_met in sourced if not is_met)
        met = (test for test, is_met in sourced if is_met)
        rows = zip_longest(islice(self._observed_tests(), _MAX_OBSERVED), met)
        yield from (test for row in rows for test in row if test is not None)

    def _is_about(self, example: DocumentedCall) -> bool:
        """Return True for an example of the function, or one that calls it."""
        names = (node.id for node in ast.walk(ast.parse(example.call.code)) if isinstance(node, ast.Name))
        return example.function == self._name or self._name in names

    def _law_tests(self) -> Iterator[tuple[DraftTest, bool]]:
        """Yield the tests of laws, each with True if the function meets it."""
        for result in self._results:
            law = self._laws[result["law"]]
            for codes, is_met in ((result["missed"], False), (result["held"], True)):
                for code in codes:
                    call = law.of_code(code)
                    yield call_test("law", call, code.rpartition("\n")[2], "True", "correctness"), is_met

    def _observed_tests(self) -> Iterator[DraftTest]:
        """Yield tests without an expectation, for calls that differ in what they show."""
        # They have tests with a source already, and show what others need not show again.
        documented = dict.fromkeys(example.call.code for example in self._documented)
        calls = [*dict.fromkeys(chain(documented, self._constant_codes(), self._drawn))]
        given = [ProgramInput(call=PythonCall(self._module, code)) for code in calls[:_MAX_CALLS]]
        results = self._program.survey_calls(self._interface, given, _SURVEY_SECONDS)
        candidates = [
            CandidateCall(one, (self._name,), "", result)
            for one, result in zip(given, results, strict=False)
            if result.exit_code is not None
            and (self._is_typed or not result.stdout.startswith(_WRONG_TYPE_ERRORS))
        ]
        for index in choose(candidates):
            candidate = candidates[index]
            call, failed = candidate.given.call, candidate.result is not None and candidate.result.exit_code
            if call is not None and call.code not in documented:
                yield _observed_call_test(call, "boundary" if failed else "correctness")

    @property
    def _is_typed(self) -> bool:
        """True if all parameters have a type hint, so that each drawn value is an intended one."""
        for key, node in self._functions.nodes:
            if node.name == self._name and key in self._program.modules:
                every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                return all(one.annotation is not None for one in every)
        return False

    def _constant_codes(self) -> Iterator[str]:
        """Yield the shortest drawn call with each constant of the function in place of each argument."""
        base = next((code for code in self._drawn if code.count("(") and "\n" not in code), None)
        if base is None:
            return
        call = ast.parse(base, mode="eval").body
        if not isinstance(call, ast.Call):
            return
        shown = [ast.unparse(one) for one in call.args]
        for constant in self._constants:
            for place, node in enumerate(call.args):
                if isinstance(node, ast.Constant) and type(node.value) is type(constant):
                    parts = [*shown[:place], repr(constant), *shown[place + 1 :]]
                    yield f"{self._name}({', '.join(parts)})"


def _observed_call_test(call: PythonCall, category: str) -> DraftTest:
    """Return a test of a call without an expectation."""
    shown = call.code.rpartition("\n")[2]
    body: dict[str, Any] = {
        "arguments": [],
        "stdin": "",
        "exit_code": None,
        "call": {"module": call.module, "code": call.code},
    }
    return DraftTest(to_name(shown), f"{call.module}: {shown}", None, "", 1.0, body, category)


def _to_constant(value: SourceValue) -> str | int | float:
    if not value.is_number:
        return value.text
    try:
        return int(value.text)
    except ValueError:
        return float(value.text)
