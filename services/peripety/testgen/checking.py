"""Runtime of exported pytest modules: checks of a subject, as in the run and behind the same fence.

Example::

    SUBJECT = checking.command(["python3", "tool.py"], Path(__file__).parent)

    def test_something():
        SUBJECT.check(arguments=["add", "1"], exit_code=0, expected_output="1")

Exported modules import this module by its name, so its name and functions are part of the export format.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.testgen.subjects.command.function import FunctionSubject
from peripety.testgen.subjects.command.subject import DEFAULT_TIMEOUT_SECONDS, CommandSubject
from peripety.testgen.subjects.grpc_service.subject import GrpcSubject, RunningGrpcService
from peripety.testgen.subjects.http_service.subject import ServiceSubject
from peripety.testgen.subjects.policy import PolicySubject
from peripety.testgen.subjects.scenario.subject import ScenarioSubject
from peripety.testgen.types import TestCase, TestStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.testgen.subjects.subject import Subject


class SubjectChecks:
    """Checks of a subject.

    Args:
        subject: the subject.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def check(self, body: str = "{}", **members: Any) -> None:
        """Run a test.

        Args:
            body: the test as JSON, in the form of its subject; for a command with `expected_output`.
            **members: the members of the test. For a call of a function, `module` and `code` replace `call`.

        Raises:
            AssertionError: the test fails or cannot be run; the message contains the reason and the observed
                result.
        """
        __tracebackhide__ = True  # hide this frame in failure reports
        given = {**json.loads(body), **members}
        if "code" in given:
            given["call"] = {"module": given.pop("module"), "code": given.pop("code")}
            given.setdefault("arguments", [])
        test = TestCase("", "", "", given.pop("expected_output", None), body=given)
        problems = self._subject.problems(test.body or {})
        ran = None if problems else self._subject.run(test)
        if ran is not None and ran.status is TestStatus.PASSED:
            return
        found = problems if ran is None else ran.findings
        told = [f"{one.code} {one.path or '/'}: {one.message}" for one in found]
        raise AssertionError("\n".join([*told, *([ran.observed] if ran and ran.observed else [])]))


def scenario(document: str) -> SubjectChecks:
    """Return checks of a scenario.

    Raises:
        SpecError: the document is not a valid scenario.
    """
    return SubjectChecks(ScenarioSubject(engine.compile(document)))


def policy(document: str) -> SubjectChecks:
    """Return checks of a policy.

    Raises:
        SpecError: the document is not a valid policy.
    """
    return SubjectChecks(PolicySubject(engine.compile_policy(document)))


def command(
    argv: Sequence[str],
    directory: str | os.PathLike[str] | None = None,
    environment: Sequence[str] = (),
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
) -> SubjectChecks:
    """Return checks of a command.

    Args:
        argv: the program and its first arguments.
        directory: copied for each test; None for an empty one.
        environment: the names of variables to pass on, if they are set. In the output, the names replace the
            values.
        timeout_seconds: the time limit of a run.

    Raises:
        FailedPreconditionError: the machine supports no fence, and `PERIPETY_TESTGEN_UNFENCED` is not true.
        InvalidArgumentError: the directory cannot be copied for each test.
    """
    subject = CommandSubject(argv, **_options(directory, environment, timeout_seconds))
    return SubjectChecks(subject)


def service(
    argv: Sequence[str],
    openapi: str,
    port: int,
    directory: str | os.PathLike[str] | None = None,
    environment: Sequence[str] = (),
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
) -> SubjectChecks:
    """Return checks of an HTTP service.

    Args:
        argv: the command that starts it.
        openapi: the OpenAPI document: a file of the directory, or, with a slash at its beginning, a path of
            the service.
        port: the port at which it accepts connections.
        directory: copied for each test; None for an empty one.
        environment: as for a command.
        timeout_seconds: the time limit of a run.

    Raises:
        FailedPreconditionError: the machine supports no fence, and `PERIPETY_TESTGEN_UNFENCED` is not true.
        InvalidArgumentError: the directory cannot be copied for each test, or the document cannot be read.
    """
    options = _options(directory, environment, timeout_seconds)
    return SubjectChecks(ServiceSubject(openapi, port, argv, **options))


def grpc_service(
    argv: Sequence[str],
    port: int,
    address: str = "",
    directory: str | os.PathLike[str] | None = None,
    environment: Sequence[str] = (),
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
) -> SubjectChecks:
    """Return checks of a gRPC service.

    Args:
        argv: the command that starts it.
        port: the port at which it accepts connections.
        address: `host:port` of a service that is running already, in place of the command; its state remains
            after each test. Empty for the command.
        directory: copied for each test; None for an empty one.
        environment: as for a command.
        timeout_seconds: the time limit of a test.

    Raises:
        FailedPreconditionError: the machine supports no fence, and `PERIPETY_TESTGEN_UNFENCED` is not true.
        InvalidArgumentError: the directory cannot be copied for each test, or the service does not answer
            reflection.
    """
    if address:
        return SubjectChecks(RunningGrpcService(address, timeout_seconds))
    options = _options(directory, environment, timeout_seconds)
    return SubjectChecks(GrpcSubject(port, argv, **options))


def function(
    name: str,
    directory: str | os.PathLike[str] | None = None,
    environment: Sequence[str] = (),
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    interpreter: Sequence[str] = (),
) -> SubjectChecks:
    """Return checks of a Python function, or of the functions of a module.

    Args:
        name: `package.module:name`, or `package.module`.
        directory: copied for each test; None for an empty one.
        environment: as for a command.
        timeout_seconds: the time limit of a run.
        interpreter: the interpreter and its options; empty for the one of this process.

    Raises:
        FailedPreconditionError: the machine supports no fence, and `PERIPETY_TESTGEN_UNFENCED` is not true.
        InvalidArgumentError: the directory cannot be copied for each test.
    """
    options = _options(directory, environment, timeout_seconds)
    return SubjectChecks(FunctionSubject(name, interpreter, **options))


def _options(
    directory: str | os.PathLike[str] | None,
    environment: Sequence[str],
    timeout_seconds: float,
) -> dict[str, Any]:
    return {
        "working_directory": None if directory is None else Path(directory),
        "environment": {name: os.environ[name] for name in environment if name in os.environ},
        "timeout_seconds": timeout_seconds,
        "unfenced": os.environ.get("PERIPETY_TESTGEN_UNFENCED", "").lower() == "true",
        "measured": False,
    }
