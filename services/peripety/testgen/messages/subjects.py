"""Subjects of tests from protobuf."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.policies.messages.asked import policy_source
from peripety.policies.sources import Brought
from peripety.requests import refuse, require
from peripety.testgen.sources import (
    Command,
    PolicyDocument,
    ScenarioDocument,
    StoredPolicy,
    StoredScenario,
)
from peripety.testgen.subjects.command.subject import DEFAULT_MEMORY_BYTES, DEFAULT_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from peripety.api.policy.v1 import policy_pb2 as policy
    from peripety.api.testgen.v1 import testgen_pb2 as pb
    from peripety.testgen.sources import SubjectSource

__all__ = ["subject_from_proto"]

_MAX_DOCUMENT_BYTES = 1024 * 1024
_MAX_PART_BYTES = 32 * 1024
_MAX_PARTS_BYTES = 512 * 1024
_MOST_PARTS = 100
_MOST_SECONDS = 300
_LEAST_MEMORY_BYTES = 16 * 1024 * 1024
_MOST_MEMORY_BYTES = 2**36
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def subject_from_proto(subject: pb.Subject, field: str = ".subject") -> SubjectSource:
    """Parse the subject of tests.

    Args:
        subject: the message.
        field: its path in the request.

    Raises:
        InvalidArgumentError: a field is invalid.
    """
    match subject.WhichOneof("subject"):
        case "spec":
            _check_document(subject.spec, f"{field}.spec")
            return ScenarioDocument(subject.spec)
        case "scenario_id":
            require(subject.scenario_id, f"{field}.scenario_id", "is empty; name a stored scenario")
            return StoredScenario(subject.scenario_id)
        case "policy":
            return _policy(subject.policy, f"{field}.policy")
        case "command":
            return _command(subject.command, f"{field}.command")
        case _:
            raise refuse(field, "is empty; set spec, scenario_id, policy or command")


def _policy(source: policy.PolicySource, field: str) -> SubjectSource:
    meant = policy_source(source, field)
    if isinstance(meant, Brought):
        _check_document(meant.document, f"{field}.document")
        return PolicyDocument(meant.document)
    require(meant.policy_id, f"{field}.policy_id", "is empty; name a stored policy")
    return StoredPolicy(meant.policy_id)


def _check_document(document: bytes, field: str) -> None:
    require(document, field, "is empty; send one JSON document")
    reason = f"has {len(document)} bytes; at most {_MAX_DOCUMENT_BYTES} are accepted, so shorten it"
    require(len(document) <= _MAX_DOCUMENT_BYTES, field, reason)


def _command(command: pb.CommandSubject, field: str) -> Command:
    require(
        command.argv and command.argv[0], f"{field}.argv", "is required; send the program and its arguments"
    )
    require(len(command.argv) <= _MOST_PARTS, f"{field}.argv", f"has more than {_MOST_PARTS} parts")
    for at, part in enumerate(command.argv):
        _check_part(part, f"{field}.argv[{at}]")
    _check_part(command.working_directory, f"{field}.working_directory")
    reason = f"has more than {_MOST_PARTS} variables"
    require(len(command.environment) <= _MOST_PARTS, f"{field}.environment", reason)
    for name, value in command.environment.items():
        # The value is secret, so the error contains the name only.
        place = f"{field}.environment[{name[:64]}]"
        require(_VARIABLE.fullmatch(name), place, "is not a valid name of an environment variable")
        _check_part(value, place)
    size = sum(len(part.encode()) for part in (*command.argv, *command.environment.values()))
    reason = f"has more than {_MAX_PARTS_BYTES} bytes of arguments and variables"
    require(size <= _MAX_PARTS_BYTES, field, reason)
    seconds = command.timeout.ToNanoseconds() / 1e9 if command.HasField("timeout") else None
    reason = f"must be above 0 and at most {_MOST_SECONDS} seconds"
    require(seconds is None or 0 < seconds <= _MOST_SECONDS, f"{field}.timeout", reason)
    memory = command.memory_bytes or DEFAULT_MEMORY_BYTES
    reason = f"must be 0, or from {_LEAST_MEMORY_BYTES} to {_MOST_MEMORY_BYTES}"
    require(_LEAST_MEMORY_BYTES <= memory <= _MOST_MEMORY_BYTES, f"{field}.memory_bytes", reason)
    return Command(
        argv=tuple(command.argv),
        working_directory=command.working_directory,
        environment=dict(command.environment),
        timeout_seconds=DEFAULT_TIMEOUT_SECONDS if seconds is None else seconds,
        memory_bytes=memory,
    )


def _check_part(part: str, field: str) -> None:
    require(len(part.encode()) <= _MAX_PART_BYTES, field, f"has more than {_MAX_PART_BYTES} bytes")
    require("\0" not in part, field, "contains NUL; leave it out")
