"""Messages as lines of JSON."""

from __future__ import annotations

import json

from google.protobuf.timestamp_pb2 import Timestamp

from peripety.api.common.v1 import engine_pb2
from peripety.api.session.v1 import session_pb2
from peripety.cli.proto_json import enum_word, to_json


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
