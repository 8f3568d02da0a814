"""What a caller wants tests to be run on: named in a request, kept with a run, ready to be run on."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from peripety import sim
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.kept import Kept
from peripety.testgen.subjects.command import CommandSubject
from peripety.testgen.subjects.command.subject import DEFAULT_MEMORY_BYTES, DEFAULT_TIMEOUT_SECONDS
from peripety.testgen.subjects.policy import PolicySubject
from peripety.testgen.subjects.scenario import ScenarioSubject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from peripety.policies.model import StoredPolicies
    from peripety.scenarios.model import ScenarioSource
    from peripety.testgen.subjects.subject import Subject
    from peripety.workers import Worker

__all__ = [
    "Command",
    "KeptSubject",
    "PolicyDocument",
    "ScenarioDocument",
    "Sources",
    "StoredPolicy",
    "StoredScenario",
    "SubjectSource",
]

_MOST = 16


@dataclass(frozen=True, slots=True)
class ScenarioDocument:
    """A specification."""

    document: bytes


@dataclass(frozen=True, slots=True)
class StoredScenario:
    """A stored scenario, in its latest version."""

    scenario_id: str


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """The document of a policy."""

    document: bytes


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """A stored policy, in its latest version."""

    policy_id: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command.

    Attributes:
        argv: the program and its first arguments.
        working_directory: on this machine; empty for an empty temporary one.
        environment: environment variables, which are told to nobody.
        timeout_seconds: most time of a run.
        memory_bytes: most memory of a run.
    """

    argv: tuple[str, ...]
    working_directory: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    memory_bytes: int = DEFAULT_MEMORY_BYTES


KeptSubject: TypeAlias = ScenarioDocument | PolicyDocument | Command
"""What is kept with a run: it depends on nothing that may change or be deleted meanwhile, but for files."""

SubjectSource: TypeAlias = KeptSubject | StoredScenario | StoredPolicy
"""What a request names."""


class Sources:
    """Finds what tests are run on; documents that were used last are kept ready.

    Args:
        scenarios: gives those that have stored scenarios.
        policies: gives those that have stored policies.
        worker: compiles.
        commands: whether commands may be run here.
    """

    def __init__(
        self,
        scenarios: Callable[[], ScenarioSource],
        policies: Callable[[], StoredPolicies],
        worker: Worker,
        *,
        commands: bool,
    ) -> None:
        self._scenarios = scenarios
        self._policies = policies
        self._worker = worker
        self._commands = commands
        self._ready: Kept[Subject] = Kept(_MOST)

    async def kept(self, source: SubjectSource) -> KeptSubject:
        """What is kept of a source.

        Raises:
            NotFoundError: there is no such scenario or policy.
            FailedPreconditionError: nobody said where stored scenarios or policies are.
        """
        match source:
            case StoredScenario(scenario_id):
                return ScenarioDocument((await self._scenarios().compiled(scenario_id)).document)
            case StoredPolicy(policy_id):
                return PolicyDocument(await self._policies().document(policy_id))
            case _:
                return source

    async def subject(self, kept: KeptSubject) -> Subject:
        """What tests are run on.

        Raises:
            SpecError: the document has errors; `findings` says which.
            InvalidArgumentError: the directory of a command cannot be used, or its program not be read.
            FailedPreconditionError: commands cannot be run here.
        """
        if isinstance(kept, Command):
            # Never kept ready: its files change.
            self._check_commands()
            return await self._worker.run(_command, kept)
        name = f"{type(kept).__name__} {sha256(kept.document).hexdigest()}"
        return self._ready.find(name) or self._ready.keep(name, await self._worker.run(_compiled, kept))

    def _check_commands(self) -> None:
        if not self._commands:
            raise FailedPreconditionError(
                ".subject.command: this server runs no commands that its callers name; whoever runs it can"
                " allow that with PERIPETY_TESTGEN_COMMANDS=true",
                code="COMMANDS_NOT_ALLOWED",
            )


def _compiled(kept: ScenarioDocument | PolicyDocument) -> Subject:
    if isinstance(kept, ScenarioDocument):
        return ScenarioSubject(sim.compile(kept.document))
    return PolicySubject(sim.compile_policy(kept.document))


def _command(command: Command) -> Subject:
    try:
        return CommandSubject(
            command.argv,
            Path(command.working_directory) if command.working_directory else None,
            command.environment,
            command.timeout_seconds,
            command.memory_bytes,
        )
    except OSError as error:
        raise InvalidArgumentError(
            f".subject.command.working_directory: cannot be read: {error.strerror}", code="NO_SUCH_DIRECTORY"
        ) from None
