"""Scenarios for rules that were read from a text, and the judge without a model."""

from __future__ import annotations

from typing import Any

from peripety.author.policy_author.scenarios import attribute_failures, build_scenarios

TOOLS: list[dict[str, Any]] = [
    {
        "server_name": "alpha",
        "tool_name": "read_item",
        "input_schema": {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "mode": {"enum": ["plain", "raw"]},
                "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "max_items": {"type": "integer", "minimum": 1},
            },
            "required": ["path", "mode", "tags"],
            "additionalProperties": False,
        },
        "argument_roles": [{"path": "/path", "role": "read_path"}],
    },
    {
        "server_name": "beta",
        "tool_name": "tell_person",
        "argument_roles": [{"path": "/to", "role": "recipient"}],
    },
    {"server_name": "beta", "tool_name": "fetch", "argument_roles": [{"path": "/url", "role": "url"}]},
]
LISTS = {"known": {"kind": "domain", "values": ["*.a.test"]}}


def calls(text: str) -> list[tuple[str, dict[str, Any], list[str]]]:
    return [
        (one["expected_decision"], one["request"]["arguments"], one["request"]["roles"])
        for one in build_scenarios(text, TOOLS, LISTS)
    ]


def test_there_is_a_call_for_each_sentence_with_what_it_names() -> None:
    plain = {"mode": "plain", "tags": ["example"]}
    assert calls(
        "Items may only be read below /a. It may fetch from @known. It may tell a person at b.test.",
    ) == [
        ("deny", {"path": "/elsewhere/example", **plain}, []),
        ("allow", {"path": "/a/example", **plain}, []),
        ("allow", {"url": "www.a.test"}, []),
        ("allow", {"to": "someone@b.test"}, []),
    ]


def test_numbers_are_on_the_side_that_is_meant() -> None:
    beyond, allowed = calls("At most 5 items may be read.")
    assert (beyond[0], beyond[1]["max_items"]) == ("deny", 6)
    assert (allowed[0], allowed[1]["max_items"]) == ("allow", 5)
    (denied,) = calls("Never read more than 3 items.")
    assert (denied[0], denied[1]["max_items"]) == ("deny", 4)


def test_what_a_rule_does_not_ask_of_an_argument_is_still_of_its_kind() -> None:
    first, second = calls("Ask before items are read. Never read items below /a.")
    assert (first[0], first[1]["path"]) == ("deny", "/a/example")
    assert (second[0], second[1]["path"]) == ("escalate", "/elsewhere/example")


def test_a_caller_has_the_role_that_is_named() -> None:
    denied, allowed = calls("Only the role `keeper` may read items.")
    assert (denied[0], denied[2]) == ("deny", [])
    assert (allowed[0], allowed[2]) == ("allow", ["keeper"])


def test_what_a_stricter_rule_decides_first_is_left_out() -> None:
    assert [then for then, *_ in calls("Items may be read. Never read items.")] == ["deny"]


def test_where_nothing_is_understood_there_is_nothing_to_test() -> None:
    assert build_scenarios("Be careful.", TOOLS) == []


def test_a_scenario_names_its_rule_and_says_that_no_model_wrote_it() -> None:
    (scenario,) = build_scenarios("It may fetch.", TOOLS)
    assert scenario["rule_id"] == "beta.1.allow"
    assert "(offline, no model)" in scenario["description"]


def test_a_judge_without_a_model_blames_no_scenario() -> None:
    assert attribute_failures([]) == {"satisfied": True, "attributions": [], "probes": []}
    found = attribute_failures(["a", "b"])
    assert not found["satisfied"]
    assert [(one["description"], one["blame"]) for one in found["attributions"]] == [
        ("a", "rule"),
        ("b", "rule"),
    ]
