"""Subjects of tests: as named in a request, as stored with a run, and as compiled for running."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from peripety import engine
from peripety.core.lru import LruCache
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.testgen.subjects.command.function import FunctionSubject
from peripety.testgen.subjects.command.subject import (
    DEFAULT_MEMORY_BYTES,
    DEFAULT_TIMEOUT_SECONDS,
    CommandSubject,
)
from peripety.testgen.subjects.grpc_service.subject import GrpcSubject
from peripety.testgen.subjects.http_service.document import DEFAULT_PORT
from peripety.testgen.subjects.http_service.subject import ServiceSubject
from peripety.testgen.subjects.policy import PolicySubject
from peripety.testgen.subjects.scenario.subject import ScenarioSubject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from peripety.engine.executor import Executor
    from peripety.policy.types import StoredPolicies
    from peripety.scenario.types import ScenarioSource
    from peripety.testgen.subjects.command.python_program import ProgramChanges
    from peripety.testgen.subjects.subject import Subject


_MAX_LOADED_SUBJECTS = 16


@dataclass(frozen=True, slots=True)
class ScenarioDocument:
    """A scenario specification."""

    document: bytes


@dataclass(frozen=True, slots=True)
class StoredScenario:
    """A stored scenario, in its latest version."""

    scenario_id: str


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """A policy document."""

    document: bytes


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """A stored policy, in its latest version."""

    policy_id: str


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command.

    Attributes:
        argv: the program and its first arguments.
        working_directory: a directory of the server; empty for a temporary one.
        environment: environment variables, which are secret.
        timeout_seconds: time limit of a run.
        memory_bytes: memory limit of a run.
        readable: more paths that it may read.
        function: the Python function to test in place of the program, as `package.module:name`, or
            all public ones of `package.module`.
        openapi: the OpenAPI document of the HTTP service that it starts; empty for no service.
        port: the port of the service.
        grpc: True if it starts a gRPC service.
        changes: the lines to test and to measure; None for whole files.
    """

    argv: tuple[str, ...]
    working_directory: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    readable: tuple[str, ...] = ()
    function: str = ""
    openapi: str = ""
    port: int = DEFAULT_PORT
    changes: ProgramChanges | None = None
    grpc: bool = False


ResolvedSubject: TypeAlias = ScenarioDocument | PolicyDocument | CommandSpec
"""A subject as stored with a run; except for files, it does not depend on anything that may change."""

SubjectSource: TypeAlias = ResolvedSubject | StoredScenario | StoredPolicy
"""A subject as named in a request."""


class SubjectResolver:
    """Resolver of subjects, with an LRU cache of compiled documents.

    Args:
        scenarios: returns the source of stored scenarios.
        policies: returns the source of stored policies.
        worker: the worker pool that compiles documents.
        commands: True if commands are allowed.
        unfenced: True to run commands without a fence if the machine supports none.
    """

    def __init__(
        self,
        scenarios: Callable[[], ScenarioSource],
        policies: Callable[[], StoredPolicies],
        worker: Executor,
        *,
        commands: bool,
        unfenced: bool = False,
    ) -> None:
        self._scenarios = scenarios
        self._policies = policies
        self._worker = worker
        self._commands = commands
        self._unfenced = unfenced
        self._loaded: LruCache[str, Subject] = LruCache(_MAX_LOADED_SUBJECTS)

    async def resolve(self, source: SubjectSource) -> ResolvedSubject:
        """Return the stored form of a subject.

        Raises:
            NotFoundError: the scenario or policy does not exist.
            FailedPreconditionError: the address of the scenario or policy service is not configured.
        """
        match source:
            case StoredScenario(scenario_id):
                return ScenarioDocument((await self._scenarios().get_scenario(scenario_id)).document)
            case StoredPolicy(policy_id):
                return PolicyDocument(await self._policies().document(policy_id))
            case _:
                return source

    async def load(self, kept: ResolvedSubject, task: str = "") -> Subject:
        """Return the subject, ready to run tests.

        The task is its description, which may name packages of a command to measure.

        Raises:
            SpecError: the document is invalid; see its `findings`.
            InvalidArgumentError: the directory of a command is not usable, or its program is not readable.
            FailedPreconditionError: commands are not allowed, or the machine supports no fence.
        """
        if isinstance(kept, CommandSpec):
            # Commands are not cached, because their files change.
            self._check_commands()
            return await self._worker.run(partial(_load_command, kept, task, unfenced=self._unfenced))
        name = f"{type(kept).__name__} {sha256(kept.document).hexdigest()}"
        return self._loaded.get(name) or self._loaded.put_if_absent(
            name, await self._worker.run(_load_document, kept)
        )

    def _check_commands(self) -> None:
        if not self._commands:
            raise FailedPreconditionError(
                ".subject.command: commands are disabled on this server; the operator can enable them"
                " with PERIPETY_TESTGEN_COMMANDS=true",
                code="COMMANDS_NOT_ALLOWED",
            )


def _load_document(kept: ScenarioDocument | PolicyDocument) -> Subject:
    if isinstance(kept, ScenarioDocument):
        return ScenarioSubject(engine.compile(kept.document))
    return PolicySubject(engine.compile_policy(kept.document))


def _load_command(command: CommandSpec, task: str, *, unfenced: bool) -> Subject:
    make: Callable[..., CommandSubject] = CommandSubject
    if command.function:
        make = partial(FunctionSubject, command.function)
    elif command.grpc:
        make = partial(GrpcSubject, command.port)
    elif command.openapi:
        make = partial(ServiceSubject, command.openapi, command.port)
    try:
        return make(
            command.argv,
            working_directory=Path(command.working_directory) if command.working_directory else None,
            environment=command.environment,
            timeout_seconds=command.timeout_seconds,
            memory_bytes=command.memory_bytes,
            task=task,
            readable=[*map(Path, command.readable)],
            changes=command.changes,
            unfenced=unfenced,
        )
    except OSError as error:
        raise InvalidArgumentError(
            f".subject.command.working_directory: cannot be read: {error.strerror}",
            code="NO_SUCH_DIRECTORY",
        ) from None
