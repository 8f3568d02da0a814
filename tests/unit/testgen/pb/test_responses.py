"""Round trip of test bodies through protobuf messages; bodies that cannot be converted are omitted."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.testgen.pb.responses import case_to_proto, cases_from_proto
from peripety.testgen.types import TestCase

PLAYED = {
    "seed": None,
    "steps": [
        {
            "actions": [{"action_id": "a", "params": {"n": 1.5, "t": "x", "f": True}}],
            "accepted": False,
            "expect": {"==": [{"var": "state.a"}, 3]},
        },
        {"actions": [], "accepted": None, "expect": None},
    ],
}
ASKED = {
    "server_name": "s",
    "tool_name": "t",
    "arguments": {"a": [1, "x"]},
    "roles": ["r"],
    "expected": "deny",
}
FED = {"arguments": ["a", ""], "stdin": "ü\n", "exit_code": 0}


def case(body: Any) -> TestCase:
    return TestCase("a_1", "a", "given", "out", "why", 0.5, body, 2, is_global=True, is_combinatorial=True)


@pytest.mark.parametrize(
    "body",
    [
        None,
        PLAYED,
        {**PLAYED, "seed": 0},
        ASKED,
        {**ASKED, "expected": "not_allow"},
        FED,
        {**FED, "exit_code": None},
    ],
)
def test_a_test_comes_back_as_it_was(body: Any) -> None:
    written = case_to_proto(case(body))
    assert written.HasField("verdict") is False
    assert cases_from_proto([written]) == (case(body),)


@pytest.mark.parametrize(
    ("body", "means"),
    [
        (
            {"steps": [{"actions": [{"action_id": "a", "params": '{"n": 2}'}], "expect": '{"!!": [true]}'}]},
            {
                "seed": None,
                "steps": [
                    {
                        "actions": [{"action_id": "a", "params": {"n": 2}}],
                        "accepted": None,
                        "expect": {"!!": [True]},
                    },
                ],
            },
        ),
        ({**ASKED, "arguments": '{"a": 1}'}, {**ASKED, "arguments": {"a": 1}}),
    ],
)
def test_what_a_model_wrote_as_a_text_goes_over_as_what_it_means(body: Any, means: Any) -> None:
    (read,) = cases_from_proto([case_to_proto(case(body))])
    assert read.body == means


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"x": 1},
        {"steps": 3},
        {"steps": [{}, 1]},
        {"steps": [{"actions": [{"params": {}}]}]},
        {"steps": [{"actions": [{"action_id": "a", "params": {"n": [1]}}]}]},
        {"steps": [{"expect": "{"}]},
        {"steps": [], "seed": "x"},
        {"steps": [], "seed": 2**70},
        {"steps": [{"accepted": "yes"}]},
        {**ASKED, "expected": "perhaps"},
        {**ASKED, "arguments": 3},
        {**ASKED, "roles": 3},
        {**FED, "arguments": [1]},
        {**FED, "arguments": 3},
        {**FED, "stdin": 3},
        {**FED, "exit_code": "x"},
        {**FED, "exit_code": 2**40},
    ],
)
def test_a_body_that_cannot_be_written_is_left_out(body: Any) -> None:
    written = case_to_proto(case(body))
    assert written.WhichOneof("body") is None
    assert (written.test_id, written.input) == ("a_1", "given")
