"""Python function as a subject: tests are calls in its module, and what they print.

A call runs behind the fence of commands, and is measured like a command: by the lines and mutants of its
module that the function uses.
"""

from __future__ import annotations

import re
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

from peripety.errors import FailedPreconditionError, Finding, InvalidArgumentError
from peripety.testgen.subjects.command.baseline.function_tests import FunctionTests
from peripety.testgen.subjects.command.python_program import HAS_HYPOTHESIS, ProgramCommand
from peripety.testgen.subjects.command.subject import CommandSubject
from peripety.testgen.subjects.subject import BodySchema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.testgen.types import DraftTest


FUNCTION_PATTERN = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")
"""The form of a function: `package.module:name`."""

_EXPECTED_OUTPUT_TEXT = (
    "what the statements print, as in a doctest: the representation of the value of each expression, unless"
    " it is None; an exception as `ValueError: text`"
)


class FunctionSubject(CommandSubject):
    """A function.

    Args:
        function: `package.module:name`.
        interpreter: the interpreter and its options; empty for the one of this process.
        **options: as for a command.

    Raises:
        FailedPreconditionError: the machine supports no fence, or Hypothesis is not installed.
        InvalidArgumentError: the function is not found, or as for a command.
    """

    def __init__(self, function: str, interpreter: Sequence[str] = (), **options: Any) -> None:
        found = FUNCTION_PATTERN.fullmatch(function)
        if found is None:
            raise InvalidArgumentError(
                f".subject.command.function: is not package.module:name: {function[:200]}",
                code="NO_SUCH_FUNCTION",
            )
        self._function = function
        argv = tuple(interpreter) or (sys.executable,)
        self._call = ProgramCommand(
            argv, found[1], is_module=True, is_isolated=False, arguments=(), function=found[2]
        )
        is_measured = options.get("measured", True)
        if is_measured and not HAS_HYPOTHESIS:
            raise FailedPreconditionError(
                "Hypothesis is not installed, which draws the arguments of functions: pip install"
                " 'peripety[functions]'",
                code="HYPOTHESIS_UNAVAILABLE",
            )
        super().__init__(argv, **options)
        if is_measured and self._program is None:
            raise InvalidArgumentError(
                f".subject.command.function: {function} is not a function of a Python module that this"
                " interpreter finds; add the directory of the module with --environment DIR, or name the"
                " interpreter after --",
                code="NO_SUCH_FUNCTION",
            )

    def _find_program(self, variables: Mapping[str, str]) -> ProgramCommand | None:  # noqa: ARG002 - of commands
        return self._call

    @property
    def _module(self) -> str:
        """The module in which calls run: the one that defines the function."""
        return (self._call if self._program is None else self._program.command).program

    @cached_property
    def body_schema(self) -> Mapping[str, Any]:  # type: ignore[override] # a command has the same for all
        """JSON Schema of a call."""
        call = {
            "type": "object",
            "properties": {
                "module": {"type": "string", "enum": [self._module]},
                "code": {"type": "string", "description": "Statements that call the function."},
            },
            "required": ["module", "code"],
            "additionalProperties": False,
        }
        return {
            "type": "object",
            "description": "Statements that run in the module of the function.",
            "properties": {"call": call},
            "required": ["call"],
            "additionalProperties": False,
        }

    @cached_property
    def material(self) -> Mapping[str, Any]:
        """The function, its calling convention, and its source."""
        material: dict[str, Any] = {"function": self._function, "expected_output": _EXPECTED_OUTPUT_TEXT}
        return material | ({} if self._program is None else self._source_material(self._program))

    def problems(self, body: Mapping[str, Any]) -> Sequence[Finding]:
        """Return a missing call, and the problems of commands."""
        wrong = BodySchema(self.body_schema).validate_body(body)
        if wrong:
            return wrong
        if not (body.get("call") or {}).get("code") or not (body.get("call") or {}).get("module"):
            return (Finding("BODY_INVALID", "/call", "is missing; write statements that call the function"),)
        return super().problems(body)

    def baseline_tests(self) -> Iterator[DraftTest]:
        """Yield calls of the function. A test without a source expects the current behaviour."""
        assert self._program is not None  # noqa: S101 - only measured subjects have baseline tests
        for draft in FunctionTests(self._program):
            yield from (draft,) if draft.source else self._described(draft)
