"""Rules common to every part of the contract, read from the descriptors that reflection serves to clients."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions

from support.repo.repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.descriptor import Descriptor, FileDescriptor, MethodDescriptor, ServiceDescriptor


PROTOS = ROOT / "protos"
SERVICES = {
    "peripety.api.agent.v1.AgentService",
    "peripety.api.gateway.v1.GatewayService",
    "peripety.api.policy.v1.ApprovalService",
    "peripety.api.policy.v1.PolicyService",
    "peripety.api.scenario.v1.ScenarioService",
    "peripety.api.session.v1.SessionService",
    "peripety.api.testgen.v1.TestGenService",
}
UNARY, SERVER, CLIENT, BOTH = (False, False), (False, True), (True, False), (True, True)
SHAPES = {
    "CompilePolicy": SERVER,
    "CompileScenario": SERVER,
    "CreateSession": UNARY,
    "Decide": UNARY,
    "DecideMany": BOTH,
    "Generate": SERVER,
    "GenerateMany": BOTH,
    "GenerateObject": SERVER,
    "GenerateScenario": SERVER,
    "GenerateTests": SERVER,
    "ForecastOutcomes": SERVER,
    "GetSession": UNARY,
    "ImportSession": CLIENT,
    "ReplaySession": SERVER,
    "ResumeRun": SERVER,
    "ResumeTests": SERVER,
    "ResumeTurn": SERVER,
    "RunAgent": SERVER,
    "TakeTurn": SERVER,
    "ValidateScenarios": BOTH,
    "WatchApprovals": SERVER,
    "WatchSession": SERVER,
}
# Verbs that change nothing and store no results: a repeated call only repeats the answer.
READING = (
    *(
        "Analyze",
        "Ask",
        "Check",
        "Compare",
        "Count",
        "Decide",
        "Diff",
        "Explain",
        "Export",
        "Forecast",
        "Ask",
        "Get",
        "Inspect",
        "List",
    ),
    *("GenerateCoverage", "Replay", "Resume", "RunMutation", "Validate", "Verify", "Watch"),
)
OPEN_ENDED = {
    "google.protobuf.Any",
    "google.protobuf.Struct",
    "google.protobuf.Value",
    "google.protobuf.ListValue",
}


def module_name(source: str) -> str:
    return source.removesuffix(".proto").replace("/", ".") + "_pb2"


FILES: list[FileDescriptor] = [
    importlib.import_module(module_name(path.relative_to(PROTOS).as_posix())).DESCRIPTOR
    for path in sorted(PROTOS.rglob("*.proto"))
]
ALL_SERVICES: list[ServiceDescriptor] = [
    service for file in FILES for service in file.services_by_name.values()
]
METHODS: list[MethodDescriptor] = [method for service in ALL_SERVICES for method in service.methods]


def nested(message: Descriptor) -> Iterator[Descriptor]:
    yield message
    for inner in message.nested_types:
        yield from nested(inner)


MESSAGES: list[Descriptor] = [
    message for file in FILES for top in file.message_types_by_name.values() for message in nested(top)
]
FIELDS: list[FieldDescriptor] = [field for message in MESSAGES for field in message.fields]


def each_method(methods: list[MethodDescriptor]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("method", methods, ids=lambda method: method.name)


def writes(method: MethodDescriptor) -> bool:
    return not method.name.startswith(READING)


def streams(method: MethodDescriptor) -> tuple[bool, bool]:
    return method.client_streaming, method.server_streaming


def test_every_service_is_in_the_descriptor_pool() -> None:
    assert {service.full_name for service in ALL_SERVICES} == SERVICES


def test_every_service_tells_its_callers_about_errors() -> None:
    for service in ALL_SERVICES:
        source = (PROTOS / service.file.name).read_text(encoding="utf-8")
        preface = source[: source.index(f"\nservice {service.name} ")].rpartition("\n\n")[2]
        assert "google.rpc.Status" in preface, service.name
        assert "ErrorInfo" in preface, service.name


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_file_names_its_package_in_other_languages(file: FileDescriptor) -> None:
    area = file.package.split(".")[2]
    options = file.GetOptions()
    assert options.java_package == file.package
    assert options.java_multiple_files
    assert options.go_package == f"peripety/api/{area}/v1;{area}v1"
    assert options.csharp_namespace.lower() == file.package


def test_key_calls_have_the_streaming_shape_that_clients_rely_on() -> None:
    assert {method.name: streams(method) for method in METHODS if method.name in SHAPES} == SHAPES


def test_turns_need_no_client_stream_so_that_browsers_can_play() -> None:
    offline_only = {"ImportSession"}
    session = next(service for service in ALL_SERVICES if service.name == "SessionService")
    assert {method.name for method in session.methods if method.client_streaming} == offline_only


@each_method(METHODS)
def test_every_call_has_messages_of_its_own(method: MethodDescriptor) -> None:
    assert method.input_type.name == f"{method.name}Request"
    assert method.output_type.name == f"{method.name}Response"
    assert method.input_type.file == method.output_type.file == method.containing_service.file


@each_method([method for method in METHODS if writes(method)])
def test_every_write_has_an_idempotency_key(method: MethodDescriptor) -> None:
    key = method.input_type.fields_by_name["request_id"]
    assert key.type == FieldDescriptor.TYPE_STRING


@each_method(METHODS)
def test_every_call_declares_truly_that_it_can_be_repeated(method: MethodDescriptor) -> None:
    # A run whose process ended is continued by the call that follows it.
    continues = method.name in {"ResumeRun", "ResumeScenarioRun", "ResumePolicyRun", "ResumeTests"}
    level = MethodOptions.IDEMPOTENT if writes(method) or continues else MethodOptions.NO_SIDE_EFFECTS
    assert method.GetOptions().idempotency_level == level


@each_method([method for method in METHODS if not writes(method)])
def test_no_read_asks_for_an_idempotency_key(method: MethodDescriptor) -> None:
    # ResumeTurn accepts the key of the turn instead of its number.
    assert "request_id" not in method.input_type.fields_by_name or method.name == "ResumeTurn"


@each_method(
    [method for method in METHODS if method.name.startswith(("List", "GetUsage", "CompareBranches"))],
)
def test_every_list_is_paged(method: MethodDescriptor) -> None:
    assert {"page_size", "page_token"} <= set(method.input_type.fields_by_name)
    assert "next_page_token" in method.output_type.fields_by_name
    assert streams(method) == UNARY


@each_method([method for method in METHODS if method.server_streaming])
def test_every_streamed_message_is_numbered(method: MethodDescriptor) -> None:
    response = method.output_type
    wrapper = response.fields_by_name.get("event") or response.fields_by_name.get("turn_event")
    numbered = (wrapper and wrapper.message_type) or response
    assert numbered.fields_by_name["sequence"].type == FieldDescriptor.TYPE_INT64


@each_method([method for method in METHODS if method.client_streaming and method.server_streaming])
def test_batches_carry_many_items_in_a_message_and_name_each(method: MethodDescriptor) -> None:
    for message in (method.input_type, method.output_type):
        (items,) = (field.message_type for field in message.fields if field.is_repeated)
        assert items
        assert "item_id" in items.fields_by_name


def test_no_message_is_open_ended() -> None:
    found = [f.full_name for f in FIELDS if f.message_type and f.message_type.full_name in OPEN_ENDED]
    assert not found


def test_no_json_hides_in_a_string() -> None:
    found = [f.full_name for f in FIELDS if f.type == FieldDescriptor.TYPE_STRING and "json" in f.name]
    assert not found


def test_no_sequence_or_seed_is_unsigned() -> None:
    """A language without unsigned integers reads every number of the contract."""
    unsigned = {FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64}
    assert not [field.full_name for field in FIELDS if field.type in unsigned]
