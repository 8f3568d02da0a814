"""Orders, environments and subjects of tests from protobuf."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.errors import field_error, require_field
from peripety.gateway.pb.requests import budget_from_proto
from peripety.policy.decisions import InlinePolicy
from peripety.policy.pb.requests import policy_source_from_proto
from peripety.rpc.messages import copy_fields, members_by_number
from peripety.testgen.subject_source import (
    CommandSpec,
    PolicyDocument,
    ScenarioDocument,
    StoredPolicy,
    StoredScenario,
)
from peripety.testgen.subjects.command.function import FUNCTION_PATTERN
from peripety.testgen.subjects.command.python_program import ProgramChanges
from peripety.testgen.subjects.command.subject import DEFAULT_MEMORY_BYTES, DEFAULT_TIMEOUT_SECONDS
from peripety.testgen.subjects.http_service.document import DEFAULT_PORT
from peripety.testgen.types import (
    REASONING_SECONDS,
    REASONING_TOKENS,
    Category,
    FilePreview,
    RunProfile,
    TaskContext,
    TaskEnvironment,
    TestGenConfig,
    TestGenOrder,
    categories_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peripety.api.policy.v1 import policy_pb2 as policy
    from peripety.testgen.subject_source import SubjectSource


_MAX_FILES = 100
_MAX_NAMES = 1_000
_MAX_ENVIRONMENT_NAME_BYTES = 4 * 1024
_MAX_PREVIEW_BYTES = 16 * 1024


def environment_from_proto(environment: pb.EnvironmentInfo, field: str = ".environment") -> TaskEnvironment:
    """Parse the environment of a task.

    Args:
        environment: the message.
        field: its path in the request.

    Raises:
        InvalidArgumentError: a field is invalid.
    """
    _check_name(environment.platform, f"{field}.platform")
    for name in ("file_count", "cpu_count", "memory_bytes"):
        require_field(getattr(environment, name) >= 0, f"{field}.{name}", "must not be negative")
    require_field(
        len(environment.files) <= _MAX_FILES,
        f"{field}.files",
        f"has more than {_MAX_FILES} files; send fewer",
    )
    return TaskEnvironment(
        platform=environment.platform,
        languages=_names_from_proto(environment.languages, f"{field}.languages"),
        available_tools=_names_from_proto(environment.available_tools, f"{field}.available_tools"),
        prohibited_tools=_names_from_proto(environment.prohibited_tools, f"{field}.prohibited_tools"),
        files=tuple(
            _file_from_proto(file, f"{field}.files[{at}]") for at, file in enumerate(environment.files)
        ),
        file_count=environment.file_count,
        cpu_count=environment.cpu_count,
        memory_bytes=environment.memory_bytes,
    )


def _file_from_proto(file: pb.FilePreview, field: str) -> FilePreview:
    require_field(file.path, f"{field}.path", "is required")
    _check_name(file.path, f"{field}.path")
    require_field(file.size_bytes >= 0, f"{field}.size_bytes", "must not be negative")
    size = len(file.preview.encode())
    reason = f"has {size} bytes; at most {_MAX_PREVIEW_BYTES} are accepted, so send its beginning"
    require_field(size <= _MAX_PREVIEW_BYTES, f"{field}.preview", reason)
    return FilePreview(
        file.path,
        file.size_bytes,
        file.preview,
        _names_from_proto(file.structure, f"{field}.structure"),
    )


def _names_from_proto(names: Sequence[str], field: str) -> tuple[str, ...]:
    require_field(len(names) <= _MAX_NAMES, field, f"has more than {_MAX_NAMES} names; send fewer")
    for at, name in enumerate(names):
        _check_name(name, f"{field}[{at}]")
    return tuple(names)


def _check_name(name: str, field: str) -> None:
    require_field(
        len(name.encode()) <= _MAX_ENVIRONMENT_NAME_BYTES,
        field,
        f"has more than {_MAX_ENVIRONMENT_NAME_BYTES} bytes; shorten it",
    )


_MAX_DESCRIPTION_BYTES = 100 * 1024
_MAX_CATEGORY_BYTES = 10 * 1024
_MAX_NAME_BYTES = 256
_MAX_COUNT = 1_000
_MAX_TOKENS = 1_000_000_000
_MAX_RUN_SECONDS = 86_400

_CONTEXTS = members_by_number(pb.TaskContext, TaskContext, TaskContext.PROMPT)
_CONFIG_RANGES = {
    "min_tests_per_category": (0, _MAX_COUNT),
    "target_tests_per_category": (1, _MAX_COUNT),
    "max_rounds_per_category": (1, _MAX_COUNT),
    "min_comprehensiveness_score": (1, 10),
    "max_global_refinement_rounds": (0, _MAX_COUNT),
    "min_total_tests": (0, _MAX_COUNT),
    "target_total_tests": (1, _MAX_COUNT),
    "max_total_rounds": (1, _MAX_COUNT),
    "max_total_tokens": (1, _MAX_TOKENS),
}
_PROFILES: dict[int, RunProfile | None] = {0: None, **members_by_number(pb.TestGenProfile, RunProfile)}
_SWITCHES = ("enable_global_refinement", "combinatorial_floor")


def order_from_proto(request: pb.GenerateTestsRequest) -> TestGenOrder:
    """Parse the input of a run.

    Raises:
        InvalidArgumentError: a field is invalid.
    """
    require_field(
        request.task_description.strip(),
        ".task_description",
        "is required; describe the task to test",
    )
    size = len(request.task_description.encode())
    reason = f"has {size} bytes; at most {_MAX_DESCRIPTION_BYTES} are accepted, so shorten it"
    require_field(size <= _MAX_DESCRIPTION_BYTES, ".task_description", reason)
    for name in ("task_id", "model"):
        value = getattr(request, name)
        size = len(value.encode())
        require_field(
            size <= _MAX_NAME_BYTES,
            f".{name}",
            f"has more than {_MAX_NAME_BYTES} bytes; shorten it",
        )
        require_field("\0" not in value, f".{name}", "contains NUL; leave it out")
    require_field(request.context in _CONTEXTS, ".context", "is not a TaskContext")
    context = _CONTEXTS[request.context]
    return TestGenOrder(
        description=request.task_description,
        task_id=request.task_id,
        environment=environment_from_proto(request.environment) if request.HasField("environment") else None,
        context=context,
        categories=categories_of(context, _categories_from_proto(request.categories)),
        config=_config_from_proto(request.config),
        model=request.model or None,
        budget=budget_from_proto(".budget", request.budget),
    )


def config_to_proto(config: TestGenConfig) -> pb.TestGenConfig:
    """Convert all limits and targets."""
    return copy_fields(pb.TestGenConfig, config, max_total_time=config.max_total_seconds)


def _categories_from_proto(categories: Iterable[pb.Category]) -> list[Category]:
    read = []
    for at, category in enumerate(categories):
        size = len(category.description.encode())
        reason = f"has {size} bytes; at most {_MAX_CATEGORY_BYTES} are accepted, so shorten it"
        require_field(size <= _MAX_CATEGORY_BYTES, f".categories[{at}].description", reason)
        read.append(Category(category.name, category.description))
    return read


def _config_from_proto(config: pb.TestGenConfig) -> TestGenConfig:
    # Only fields that are set are listed, so defaults apply to the others.
    named = {*_CONFIG_RANGES, *_SWITCHES}
    given: dict[str, Any] = {one.name: value for one, value in config.ListFields() if one.name in named}
    for name, (least, most) in _CONFIG_RANGES.items():
        require_field(
            least <= given.get(name, least) <= most,
            f".config.{name}",
            f"must be from {least} to {most}",
        )
    if config.HasField("max_total_time"):
        seconds = config.max_total_time.ToNanoseconds() / 1e9
        reason = f"must be above 0 and at most {_MAX_RUN_SECONDS} seconds"
        require_field(0 < seconds <= _MAX_RUN_SECONDS, ".config.max_total_time", reason)
        given["max_total_seconds"] = seconds
    require_field(config.profile in _PROFILES, ".config.profile", "is not a TestGenProfile")
    profile = _PROFILES[config.profile]
    if profile is RunProfile.REASONING:
        given = {"max_total_tokens": REASONING_TOKENS, "max_total_seconds": REASONING_SECONDS, **given}
    return TestGenConfig(**given, parallel_categories=config.parallel_categories, profile=profile)


_MAX_DOCUMENT_BYTES = 1024 * 1024
_MAX_PART_BYTES = 32 * 1024
_MAX_PARTS_BYTES = 512 * 1024
_MAX_PARTS = 100
_MAX_COMMAND_SECONDS = 300
_MIN_MEMORY_BYTES = 16 * 1024 * 1024
_MAX_MEMORY_BYTES = 2**36
_MAX_PORT = 65_535
_MAX_CHANGED_FILES = 10_000
_MAX_LINE = 100_000
_VARIABLE_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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
            require_field(subject.scenario_id, f"{field}.scenario_id", "is empty; name a stored scenario")
            return StoredScenario(subject.scenario_id)
        case "policy":
            return _policy_from_proto(subject.policy, f"{field}.policy")
        case "command":
            return _command_from_proto(subject.command, f"{field}.command")
        case _:
            raise field_error(field, "is empty; set spec, scenario_id, policy or command")


def _policy_from_proto(source: policy.PolicySource, field: str) -> SubjectSource:
    meant = policy_source_from_proto(source, field)
    if isinstance(meant, InlinePolicy):
        _check_document(meant.document, f"{field}.document")
        return PolicyDocument(meant.document)
    require_field(meant.policy_id, f"{field}.policy_id", "is empty; name a stored policy")
    return StoredPolicy(meant.policy_id)


def _check_document(document: bytes, field: str) -> None:
    require_field(document, field, "is empty; send one JSON document")
    reason = f"has {len(document)} bytes; at most {_MAX_DOCUMENT_BYTES} are accepted, so shorten it"
    require_field(len(document) <= _MAX_DOCUMENT_BYTES, field, reason)


def _command_from_proto(command: pb.CommandSubject, field: str) -> CommandSpec:
    require_field(
        command.function or (command.argv and command.argv[0]),
        f"{field}.argv",
        "is required; send the program and its arguments",
    )
    require_field(
        not command.function or FUNCTION_PATTERN.fullmatch(command.function),
        f"{field}.function",
        f"is not package.module:name or package.module: {command.function[:_MAX_NAME_BYTES]}",
    )
    reason = "excludes openapi and grpc; use one of them"
    is_service = command.openapi or command.grpc
    require_field(not (command.function and is_service), f"{field}.function", reason)
    reason = "excludes openapi; use one of them"
    require_field(not (command.openapi and command.grpc), f"{field}.grpc", reason)
    _check_part(command.openapi, f"{field}.openapi")
    require_field(0 <= command.port <= _MAX_PORT, f"{field}.port", f"must be from 0 to {_MAX_PORT}")
    require_field(len(command.argv) <= _MAX_PARTS, f"{field}.argv", f"has more than {_MAX_PARTS} parts")
    for at, part in enumerate(command.argv):
        _check_part(part, f"{field}.argv[{at}]")
    _check_part(command.working_directory, f"{field}.working_directory")
    reason = f"has more than {_MAX_PARTS} variables"
    require_field(len(command.environment) <= _MAX_PARTS, f"{field}.environment", reason)
    for name, value in command.environment.items():
        # The value is secret, so the error contains the name only.
        place = f"{field}.environment[{name[:64]}]"
        require_field(
            _VARIABLE_PATTERN.fullmatch(name),
            place,
            "is not a valid name of an environment variable",
        )
        _check_part(value, place)
    reason = f"has more than {_MAX_PARTS} paths"
    require_field(len(command.readable_paths) <= _MAX_PARTS, f"{field}.readable_paths", reason)
    for at, path in enumerate(command.readable_paths):
        place = f"{field}.readable_paths[{at}]"
        _check_part(path, place)
        require_field(path.startswith("/"), place, "is not an absolute path")
    parts = (*command.argv, *command.environment.values(), *command.readable_paths)
    size = sum(len(part.encode()) for part in parts)
    reason = f"has more than {_MAX_PARTS_BYTES} bytes of arguments, variables and paths"
    require_field(size <= _MAX_PARTS_BYTES, field, reason)
    seconds = command.timeout.ToNanoseconds() / 1e9 if command.HasField("timeout") else None
    reason = f"must be above 0 and at most {_MAX_COMMAND_SECONDS} seconds"
    require_field(seconds is None or 0 < seconds <= _MAX_COMMAND_SECONDS, f"{field}.timeout", reason)
    memory = command.memory_bytes or DEFAULT_MEMORY_BYTES
    reason = f"must be 0, or from {_MIN_MEMORY_BYTES} to {_MAX_MEMORY_BYTES}"
    require_field(_MIN_MEMORY_BYTES <= memory <= _MAX_MEMORY_BYTES, f"{field}.memory_bytes", reason)
    return CommandSpec(
        argv=tuple(command.argv),
        working_directory=command.working_directory,
        environment=dict(command.environment),
        timeout_seconds=DEFAULT_TIMEOUT_SECONDS if seconds is None else seconds,
        memory_bytes=memory,
        readable=tuple(command.readable_paths),
        function=command.function,
        openapi=command.openapi,
        port=command.port or DEFAULT_PORT,
        grpc=command.grpc,
        changes=_changes_from_proto(command.changes, f"{field}.changes")
        if command.HasField("changes")
        else None,
    )


def _changes_from_proto(changes: pb.SubjectChanges, field: str) -> ProgramChanges:
    require_field(changes.revision, f"{field}.revision", "is required; name the revision")
    size = len(changes.revision.encode())
    reason = f"has {size} bytes; at most {_MAX_NAME_BYTES} are accepted"
    require_field(size <= _MAX_NAME_BYTES, f"{field}.revision", reason)
    reason = f"has more than {_MAX_CHANGED_FILES} files; name a later revision"
    require_field(len(changes.files) <= _MAX_CHANGED_FILES, f"{field}.files", reason)
    files = {}
    for at, file in enumerate(changes.files):
        place = f"{field}.files[{at}]"
        require_field(file.path, f"{place}.path", "is required")
        _check_name(file.path, f"{place}.path")
        for number, lines in enumerate(file.lines):
            is_range = 0 < lines.first <= lines.last <= _MAX_LINE
            reason = f"is not a range of lines from 1 to {_MAX_LINE}"
            require_field(is_range, f"{place}.lines[{number}]", reason)
        files[file.path] = tuple((lines.first, lines.last) for lines in file.lines)
    return ProgramChanges(changes.revision, files)


def _check_part(part: str, field: str) -> None:
    require_field(len(part.encode()) <= _MAX_PART_BYTES, field, f"has more than {_MAX_PART_BYTES} bytes")
    require_field("\0" not in part, field, "contains NUL; leave it out")
