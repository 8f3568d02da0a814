"""Validation of a policy reports all errors with their locations, before any decision."""

from __future__ import annotations

import json
from typing import Any

import pytest

from peripety import engine
from peripety.errors import Severity, SpecError
from support.engine.policies import policy_document, policy_spec, rule, tool

ERROR, WARNING = Severity.ERROR, Severity.WARNING
MATCHER = {"argument_roles": ["target"], "kind": "path", "among": ["/a"]}
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
OPEN = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {}}}}}


def findings(**parts: Any) -> list[tuple[str, str, Severity]]:
    found = engine.validate_policy(policy_document(**parts))
    return [(finding.code, finding.path, finding.severity) for finding in found]


def matching(**parts: Any) -> list[dict[str, Any]]:
    return [rule(arguments=[{**MATCHER, **parts}])]


def listed(values: list[str], kind: str = "path") -> dict[str, Any]:
    return {"kind": kind, "values": values}


def doubling(key: str, times: int = 40) -> dict[str, Any]:
    """A schema each of whose parts is about the next one twice."""
    parts: dict[str, Any] = {
        f"p{number}": {key: [{"$ref": f"#/$defs/p{number + 1}"}] * 2} for number in range(times)
    }
    return {"$defs": {**parts, f"p{times}": {"type": "object"}}, "$ref": "#/$defs/p0"}


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"tools": [tool(input_schema=doubling("allOf", 8))]},
        {"tools": [tool(input_schema={"properties": {"a": {"anyOf": [{"$ref": "#"}, {"type": "string"}]}}})]},
        {"tools": [tool(input_schema={"anyOf": [{"const": {"a": number}} for number in range(1000)]})]},
        {"rules": [rule()]},
        {"invariants": [rule("structural-a", "deny")], "rules": [rule("a")]},
        {"rules": matching(among=["@a"]), "lists": {"a": listed(["@b", "/x"]), "b": listed(["/y"])}},
        {"rules": [rule(servers=["s"], tools=["t"], read_only=False, roles=["anybody"])]},
        {"rules": [rule(logic={"==": [{"var": "arguments.a"}, {"var": "roles.0"}]})]},
        {"rules": [rule(logic={"some": [{"var": "arguments.a"}, {"==": [{"var": ""}, "x"]}]})]},
        {"tools": [tool(input_schema=OPEN)], "rules": [rule(logic={"var": "arguments.a.b.c"})]},
        {"tools": [tool(input_schema={"$ref": "#/$defs/x", "$defs": {"x": CLOSED}},
                        argument_roles={"/z": "target"})]},
        {"tools": [tool(input_schema=CLOSED), tool("u")], "rules": [rule(logic={"var": "arguments.z"})]},
        {"tools": [tool(argument_roles={"/items/0/name": "target"},
                        input_schema={"properties": {"items": {"type": "array"}}})]},
    ],
)  # fmt: skip
def test_a_valid_policy_has_no_findings(parts: dict[str, Any]) -> None:
    assert findings(**parts) == []


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"tools": [tool(), tool()]}, ("DUPLICATE_TOOL", "/tools/1", ERROR)),
        ({"rules": [rule(), rule()]}, ("DUPLICATE_ID", "/rules/1/id", ERROR)),
        ({"invariants": [rule("structural-a"), rule("structural-a")]},
         ("DUPLICATE_ID", "/invariants/1/id", ERROR)),
        ({"invariants": [rule("a")]}, ("BAD_RULE_ID", "/invariants/0/id", ERROR)),
        ({"rules": [rule("structural-a")]}, ("BAD_RULE_ID", "/rules/0/id", ERROR)),
        ({"invariants": [rule("structural-unknown-tool")]}, ("BAD_RULE_ID", "/invariants/0/id", ERROR)),
        ({"rules": [rule(servers=["s", "z"])]}, ("UNKNOWN_SERVER", "/rules/0/when/servers/1", ERROR)),
        ({"rules": [rule(tools=["s/t"])]}, ("UNKNOWN_TOOL", "/rules/0/when/tools/0", ERROR)),
        ({"rules": [rule(argument_roles=["z"])]},
         ("UNKNOWN_ARGUMENT_ROLE", "/rules/0/when/argument_roles/0", ERROR)),
        ({"rules": matching(argument_roles=["z"])},
         ("UNKNOWN_ARGUMENT_ROLE", "/rules/0/when/arguments/0/argument_roles/0", ERROR)),
        ({"rules": matching(among=["/a", "relative"])},
         ("BAD_ENTRY", "/rules/0/when/arguments/0/among/1", ERROR)),
        ({"rules": matching(kind="domain", among=["*.*.x"])},
         ("BAD_ENTRY", "/rules/0/when/arguments/0/among/0", ERROR)),
        ({"rules": matching(kind="email", among=["a@[::1]"])},
         ("BAD_ENTRY", "/rules/0/when/arguments/0/among/0", ERROR)),
        ({"lists": {"a/b": listed(["x"])}}, ("BAD_ENTRY", "/lists/a~1b/values/0", ERROR)),
        ({"rules": matching(among=["@z"])}, ("UNKNOWN_LIST", "/rules/0/when/arguments/0/among/0", ERROR)),
        ({"rules": matching(among=["@"])}, ("UNKNOWN_LIST", "/rules/0/when/arguments/0/among/0", ERROR)),
        ({"lists": {"a": listed(["@z"])}}, ("UNKNOWN_LIST", "/lists/a/values/0", ERROR)),
        ({"lists": {"a": listed(["x"], "identifier")}, "rules": matching(among=["@a"])},
         ("WRONG_LIST_KIND", "/rules/0/when/arguments/0/among/0", ERROR)),
        ({"lists": {"a": listed(["@a"])}}, ("LIST_CYCLE", "/lists/a", ERROR)),
        ({"lists": {"a": listed(["@b"]), "b": listed(["@c"]), "c": listed(["@a"])}},
         ("LIST_CYCLE", "/lists/b", ERROR)),
        ({"lists": {"a": listed(["/x"] * 9_999)}, "rules": matching(among=["@a", "/y"])},
         ("LIST_TOO_LONG", "/rules/0/when/arguments/0/among", ERROR)),
        ({"rules": [rule(logic={"equals": [1, 2]})]}, ("UNKNOWN_OPERATOR", "/rules/0/when/logic", ERROR)),
        ({"rules": [rule(logic={"==": [1]})]}, ("WRONG_ARITY", "/rules/0/when/logic/==", ERROR)),
        ({"rules": [rule(logic={"var": "a"})]}, ("UNKNOWN_VARIABLE", "/rules/0/when/logic/var", ERROR)),
        ({"rules": [rule(logic={"var": "tool.name"})]},
         ("UNKNOWN_VARIABLE", "/rules/0/when/logic/var", ERROR)),
        ({"rules": [rule(logic={"var": {"cat": ["a"]}})]},
         ("DYNAMIC_PATH", "/rules/0/when/logic/var", ERROR)),
        ({"rules": [rule(logic={"missing": ["a"]})]},
         ("UNKNOWN_VARIABLE", "/rules/0/when/logic/missing", ERROR)),
        ({"tools": [tool(input_schema=CLOSED)], "rules": [rule(logic={"var": "arguments.z"})]},
         ("UNKNOWN_ARGUMENT", "/rules/0/when/logic/var", ERROR)),
        ({"tools": [tool(input_schema=CLOSED)], "rules": [rule(logic={"var": "arguments.a.b"})]},
         ("UNKNOWN_ARGUMENT", "/rules/0/when/logic/var", ERROR)),
        ({"tools": [tool(input_schema=CLOSED), tool("u", input_schema=OPEN)],
          "rules": [rule(logic={"var": "arguments.z"})]},
         ("UNKNOWN_ARGUMENT", "/rules/0/when/logic/var", WARNING)),
        ({"tools": [tool(input_schema=CLOSED), tool("u", input_schema=OPEN)],
          "rules": [rule(tools=["t"], logic={"var": "arguments.z"})]},
         ("UNKNOWN_ARGUMENT", "/rules/0/when/logic/var", ERROR)),
        ({"tools": [tool(input_schema=OPEN, argument_roles={"/a/c": "target"})]},
         ("UNKNOWN_ARGUMENT", "/tools/0/argument_roles/0/path", WARNING)),
        ({"tools": [tool(input_schema=CLOSED, argument_roles={"/a/b": "target"})]},
         ("UNKNOWN_ARGUMENT", "/tools/0/argument_roles/0/path", WARNING)),
        ({"tools": [tool(input_schema={"type": "nothing"})]},
         ("BAD_SCHEMA", "/tools/0/input_schema/type", ERROR)),
        ({"tools": [tool(input_schema={"properties": {"a/b": {"pattern": "(?=a)b"}}})]},
         ("BAD_SCHEMA", "/tools/0/input_schema/properties/a~1b/pattern", ERROR)),
        ({"tools": [tool(input_schema={"pattern": "((a{1000}){1000}){1000}"})]},
         ("BAD_SCHEMA", "/tools/0/input_schema/pattern", ERROR)),
        ({"tools": [tool(input_schema=doubling("allOf"))]}, ("BAD_SCHEMA", "/tools/0/input_schema", ERROR)),
        ({"tools": [tool(input_schema=doubling("anyOf"))]}, ("BAD_SCHEMA", "/tools/0/input_schema", ERROR)),
        ({"tools": [tool(input_schema={"$ref": "file:///elsewhere"})]},
         ("BAD_SCHEMA", "/tools/0/input_schema", ERROR)),
        ({"tools": [tool(), tool("u", "v")], "rules": [rule(servers=["s"], tools=["u"])]},
         ("NEVER_HOLDS", "/rules/0/when/tools", WARNING)),
        ({"rules": [rule(destructive=True)]}, ("NEVER_HOLDS", "/rules/0/when/destructive", WARNING)),
        ({"tools": [tool(argument_roles={"/a": "target"}), tool("u")],
          "rules": [rule(tools=["u"], arguments=[MATCHER])]},
         ("NEVER_HOLDS", "/rules/0/when/arguments/0", WARNING)),
    ],
)  # fmt: skip
def test_a_document_is_checked(parts: dict[str, Any], expected: tuple[str, str, Severity]) -> None:
    assert expected in findings(**parts)


def test_what_is_meant_is_guessed() -> None:
    (finding,) = engine.validate_policy(policy_document(rules=matching(argument_roles=["targt"])))[:1]
    assert "did you mean 'target'?" in finding.message


def test_everything_that_is_wrong_is_told_at_once() -> None:
    rules = [rule("a", servers=["z"]), rule("a", tools=["z"]), *matching(among=["x", "@y"])]
    codes = [code for code, _, _ in findings(rules=rules)]
    assert {"UNKNOWN_SERVER", "DUPLICATE_ID", "UNKNOWN_TOOL", "BAD_ENTRY", "UNKNOWN_LIST"} <= set(codes)


def test_warnings_never_hide_an_error() -> None:
    rules = [rule(f"r{index}", read_only=True) for index in range(60)] + [rule("z", servers=["z"])]
    found = findings(rules=rules)
    assert len(found) == 50
    assert ("UNKNOWN_SERVER", "/rules/60/when/servers/0", ERROR) in found


def test_a_policy_with_errors_is_not_compiled_and_one_with_warnings_is() -> None:
    with pytest.raises(SpecError) as refused:
        engine.compile_policy(policy_document(rules=[rule(servers=["z"])]))
    assert [finding.code for finding in refused.value.findings] == ["UNKNOWN_SERVER"]
    assert engine.compile_policy(policy_document(rules=[rule(read_only=True)])).rules


@pytest.mark.parametrize(
    "document",
    [b"", b"{}", b"[]", b'{"tools": []}', b"\xff", json.dumps(policy_spec(tools=[])).encode()],
)
def test_what_is_no_policy_at_all_has_findings(document: bytes) -> None:
    assert engine.validate_policy(document)


def test_lists_that_double_again_and_again_are_refused_without_being_written_out() -> None:
    lists = {f"l{index}": listed([f"@l{index + 1}"] * 8) for index in range(20)}
    lists["l20"] = listed([])
    found = findings(lists=lists, rules=matching(among=["@l0"]))
    assert ("LIST_TOO_LONG", "/rules/0/when/arguments/0/among", ERROR) in found
    assert ("LIST_TOO_LONG", "/lists/l17/values", ERROR) not in found


def test_an_argument_that_one_of_very_many_tools_may_have_is_no_finding() -> None:
    tools = [tool(f"t{index}", input_schema=CLOSED) for index in range(300)]
    assert findings(tools=tools, rules=[rule(logic={"var": "arguments.z"})]) == []
