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
from peripety.cli.proto_json import enum_word, from_json, to_json
from peripety.errors import InvalidArgumentError


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
    assert value["params"] == {"f": {"flag": False}, "x": {"text": "t"}, "y": {"number": 1.5}}
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
