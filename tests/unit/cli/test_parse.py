"""Messages from plain JSON: the way back from what the commands print, and all that is wrong at once."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.cli.proto_json import from_json, to_json
from peripety.errors import InvalidArgumentError


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
