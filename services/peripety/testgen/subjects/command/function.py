"""Python function or module as a subject: tests are calls in its module, and what they print.

A call runs behind the fence of commands, and is measured like a command: by the lines and mutants of its
module that the function uses; without a function, by those of all files that define public functions.
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


FUNCTION_PATTERN = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?::([A-Za-z_]\w*))?")
"""The form of a function: `package.module:name`, or `package.module` for all public ones."""

_EXPECTED_OUTPUT_TEXT = (
    "what the statements print, as in a doctest: the representation of the value of each expression, unless"
    " it is None; an exception as `ValueError: text`"
)


class FunctionSubject(CommandSubject):
    """A function, or all public functions of a module.

    Args:
        function: `package.module:name`, or `package.module`.
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
                f"subject.command.function: is not package.module:name or package.module: {function[:200]}",
                code="NO_SUCH_FUNCTION",
            )
        self._function = function
        argv = tuple(interpreter) or (sys.executable,)
        self._call = ProgramCommand(
            argv,
            found[1],
            is_module=True,
            is_isolated=False,
            arguments=(),
            is_library=True,
            function=found[2] or "",
        )
        is_measured = options.get("measured", True)
        if is_measured and not HAS_HYPOTHESIS:
            raise FailedPreconditionError(
                "Hypothesis is not installed, which draws the arguments of functions: pip install"
                " 'peripety[functions]'",
                code="HYPOTHESIS_UNAVAILABLE",
            )
        super().__init__(argv, **options)
        if is_measured and (self._program is None or not self._program.functions):
            raise InvalidArgumentError(
                f"subject.command.function: {function} is not a function, or a module with public functions,"
                " that this interpreter finds; add the directory of the module with --environment DIR, or"
                " name the interpreter after --",
                code="NO_SUCH_FUNCTION",
            )

    def _find_program(self, variables: Mapping[str, str]) -> ProgramCommand | None:  # noqa: ARG002 - of commands
        return self._call

    @property
    def _modules(self) -> list[str]:
        """The modules in which calls run: those that define the functions."""
        if self._program is None:
            return [self._call.program]
        return [*dict.fromkeys(module for module, _ in self._program.functions)]

    @cached_property
    def body_schema(self) -> Mapping[str, Any]:  # type: ignore[override] # a command has the same for all
        """JSON Schema of a call."""
        call = {
            "type": "object",
            "properties": {
                "module": {"type": "string", "enum": self._modules},
                "code": {"type": "string", "description": "Statements that call a function."},
            },
            "required": ["module", "code"],
            "additionalProperties": False,
        }
        return {
            "type": "object",
            "description": "Statements that run in the module of a function.",
            "properties": {"call": call},
            "required": ["call"],
            "additionalProperties": False,
        }

    @cached_property
    def material(self) -> Mapping[str, Any]:
        """The function or functions, their calling convention, and their source."""
        material: dict[str, Any] = {"function": self._function, "expected_output": _EXPECTED_OUTPUT_TEXT}
        program = self._program
        if program is None:
            return material
        if not self._call.function:
            names = [f"{module}:{name}" for module, name in program.functions]
            material = {"module": self._function, "functions": names, **material}
            del material["function"]
        return material | self._source_material(program)

    def problems(self, body: Mapping[str, Any]) -> Sequence[Finding]:
        """Return a missing call, and the problems of commands."""
        wrong = BodySchema(self.body_schema).validate_body(body)
        if wrong:
            return wrong
        if not (body.get("call") or {}).get("code") or not (body.get("call") or {}).get("module"):
            return (Finding("BODY_INVALID", "/call", "is missing; write statements that call a function"),)
        return super().problems(body)

    def baseline_tests(self) -> Iterator[DraftTest]:
        """Yield calls of the functions. A test without a source expects the current behaviour."""
        assert self._program is not None  # noqa: S101 - only measured subjects have baseline tests
        for draft in FunctionTests(self._program):
            yield from (draft,) if draft.source else self._described(draft)
