"""Messages as lines of JSON.

Messages from plain JSON: the way back from what the commands print, and all that is wrong at once.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from peripety.api.common.v1 import engine_pb2
from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.session.v1 import session_pb2
from peripety.errors import InvalidArgumentError
from peripety.rpc.proto_json import enum_word, from_json, message_from_json, to_json


def test_documents_inside_a_message_stay_documents() -> None:
    change = engine_pb2.Change(path="state.a", before=b"1", after=b'{"b":[true,null]}')
    assert to_json(change) == {"path": "state.a", "before": 1, "after": {"b": [True, None]}}


def test_enums_read_as_words() -> None:
    status = engine_pb2.RunStatus(kind=engine_pb2.RUN_STATUS_KIND_LOST, condition="alpha")
    assert to_json(status) == {"kind": "lost", "condition": "alpha"}


def test_a_value_of_a_later_version_reads_as_its_number() -> None:
    field = engine_pb2.RunStatus.DESCRIPTOR.fields_by_name["kind"]
    assert enum_word(field, 99) == "99"


def test_whole_numbers_maps_lists_and_times_are_plain() -> None:
    session = session_pb2.Session(
        session_id="s",
        turn=2**53 - 1,
        create_time=Timestamp(seconds=0),
        legal_actions=[engine_pb2.LegalAction(action_id="a"), engine_pb2.LegalAction(action_id="b")],
    )
    assert to_json(session) == {
        "session_id": "s",
        "turn": 2**53 - 1,
        "create_time": "1970-01-01T00:00:00Z",
        "legal_actions": [{"action_id": "a"}, {"action_id": "b"}],
    }


def test_maps_are_objects_in_key_order() -> None:
    call = engine_pb2.ActionCall(action_id="a")
    call.params["y"].number = 1.5
    call.params["x"].text = "t"
    call.params["f"].flag = False
    value = to_json(call)
    assert list(value["params"]) == ["f", "x", "y"]
    assert value["params"] == {"f": False, "x": "t", "y": 1.5}
    json.dumps(value)


def test_what_is_printed_can_be_read_again() -> None:
    scenario = pb.PolicyScenario(
        scenario_id="a",
        description="alpha",
        request=pb.PolicyRequest(server_name="s", tool_name="t", arguments=b'{"n": [1, null]}', roles=["r"]),
        expected=pb.EXPECTATION_NOT_ALLOW,
        source=pb.SCENARIO_SOURCE_DIRECTED,
        rule_id="b",
    )
    assert from_json(pb.PolicyScenario, [to_json(scenario)], "file") == [scenario]


def test_messages_and_lists_of_them_are_filled() -> None:
    tool = {
        "server_name": "s",
        "tool_name": "t",
        "input_schema": {"type": "object"},
        "argument_roles": [{"path": "/a", "role": "b"}],
        "read_only": True,
    }
    (message,) = from_json(pb.ToolAnnotation, [tool], "file")
    assert message.input_schema == b'{"type": "object"}'
    assert (message.argument_roles[0].path, message.read_only, message.destructive) == ("/a", True, False)


@pytest.mark.parametrize(
    ("value", "place", "words"),
    [
        ({}, "file", "must be a list"),
        ([1], "file[0]", "must be an object"),
        ([{"descripton": ""}], "file[0].descripton", "use one of scenario_id, description"),
        ([{"description": 1}], "file[0].description", "must be a string"),
        ([{"description": "\ud800"}], "file[0].description", "surrogates"),
        ([{"expected": "alow"}], "file[0].expected", "must be one of allow, deny, escalate, not_allow"),
        ([{"expected": 1}], "file[0].expected", "must be one of"),
        ([{"request": []}], "file[0].request", "must be an object"),
        ([{"request": {"roles": "r"}}], "file[0].request.roles", "must be a list"),
        ([{"request": {"roles": ["r", 2]}}], "file[0].request.roles[1]", "must be a string"),
        ([{"request": {"arguments": {"n": float("nan")}}}], "file[0].request.arguments", "JSON compliant"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(value: Any, place: str, words: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        from_json(pb.PolicyScenario, value, "file")
    (violation,) = refused.value.violations
    assert violation.field == place
    assert words in violation.reason


def test_everything_that_is_wrong_is_named_at_once() -> None:
    tools = [{"read_only": "yes"}, {"argument_roles": [{"path": None}]}]
    with pytest.raises(InvalidArgumentError, match="2 problems") as refused:
        from_json(pb.ToolAnnotation, tools, "file")
    assert [one.field for one in refused.value.violations] == [
        "file[0].read_only",
        "file[1].argument_roles[0].path",
    ]


def _session_request() -> session_pb2.CreateSessionRequest:
    request = session_pb2.CreateSessionRequest(request_id="r", scenario_id="s", seed=0)
    request.seat_config.seats.add(seat_id="a", entity_id="b")
    request.seat_config.order = session_pb2.SEAT_ORDER_ROTATING
    request.seat_config.seat_timeout.FromSeconds(90)
    request.narrator.turn_budget.max_calls = 3
    return request


def _turn_request() -> session_pb2.TakeTurnRequest:
    request = session_pb2.TakeTurnRequest(session_id="s", expected_turn=2**53 - 1)
    call = request.actions.add(action_id="a")
    call.params["x"].number = 1.5
    call.params["y"].flag = False
    return request


@pytest.mark.parametrize(
    "message",
    [
        _session_request(),
        _turn_request(),
        session_pb2.ImportSessionRequest(request_id="r", chunk=b"\x00\xff"),
        session_pb2.Session(create_time=Timestamp(seconds=1), turn=3, state=b'{"a": [1, null]}'),
        session_pb2.ForecastOutcomesResponse(sequence=1, runs=2, final=True),
    ],
)
def test_every_kind_of_field_can_be_read_again(message: Any) -> None:
    value = json.loads(json.dumps(to_json(message)))
    assert message_from_json(type(message), value, "body") == message


@pytest.mark.parametrize(
    ("value", "place", "words"),
    [
        ({"expected_turn": 1.5}, "expected_turn", "must be a whole number"),
        ({"expected_turn": True}, "expected_turn", "must be a whole number"),
        ({"expected_turn": 2**53}, "expected_turn", "less than 9007199254740992"),
        ({"actions": [{"params": []}]}, "actions[0].params", "must be an object"),
        ({"actions": [{"params": {"a": None}}]}, "actions[0].params.a", "must be a number, a string"),
        ({"actions": [{"params": {"a": float("inf")}}]}, "actions[0].params.a", "must be a number"),
    ],
)
def test_a_request_that_is_wrong_is_named_by_its_field(value: Any, place: str, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match="body is not valid") as refused:
        message_from_json(session_pb2.TakeTurnRequest, value, "body")
    (violation,) = refused.value.violations
    assert violation.field == place
    assert words in violation.reason


@pytest.mark.parametrize(
    ("value", "place", "words"),
    [
        ({"seat_config": {"seat_timeout": "soon"}}, "seat_config.seat_timeout", "such as 90s"),
        ({"seat_config": {"seat_timeout": 90}}, "seat_config.seat_timeout", "such as 90s"),
        ({"narrator": {"turn_budget": {"max_cost": 1}}}, "narrator.turn_budget.max_cost", "an object"),
        ([], "", "must be an object"),
    ],
)
def test_times_and_whole_bodies_are_checked(value: Any, place: str, words: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        message_from_json(session_pb2.CreateSessionRequest, value, "body")
    (violation,) = refused.value.violations
    assert violation.field == place
    assert words in violation.reason


def test_bytes_of_files_are_base64() -> None:
    assert to_json(session_pb2.ExportSessionResponse(chunk=b"ab")) == {"chunk": "YWI="}
    with pytest.raises(InvalidArgumentError) as refused:
        message_from_json(session_pb2.ImportSessionRequest, {"chunk": "?"}, "body")
    assert refused.value.violations[0].reason == "must be bytes in base64"


def test_only_one_of_several_choices_can_be_set() -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        message_from_json(session_pb2.ResumeTurnRequest, {"turn": 1, "request_id": "r"}, "body")
    (violation,) = refused.value.violations
    assert (violation.field, violation.reason) == ("request_id", "cannot be set together with turn")
