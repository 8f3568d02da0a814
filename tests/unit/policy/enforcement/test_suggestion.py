"""Sentences that are suggested from a decision log: what they allow, and what they leave out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.author.policy_author.rules import build_rules
from peripety.engine import Decision, ToolRequest, compile_policy
from peripety.policy.enforcement.decision_log import REDACTED, call_hash
from peripety.policy.enforcement.suggestion import suggest_sentences
from support.engine.policies import policy_document, tool

if TYPE_CHECKING:
    from peripety.engine import Policy
    from peripety.policy.enforcement.suggestion import Suggestion

TEXT: dict[str, Any] = {"type": "string"}


def _schema(**arguments: Any) -> dict[str, Any]:
    return {"type": "object", "properties": arguments}


TOOLS = [
    tool(
        "read_item",
        "store",
        argument_roles={"/path": "read_path"},
        input_schema={**_schema(path=TEXT, head={"type": "integer"}), "required": ["path"]},
    ),
    tool(
        "write_item",
        "store",
        argument_roles={"/path": "write_path"},
        input_schema=_schema(
            path=TEXT, content=TEXT, mode={**TEXT, "enum": ["append", "new"]}, force={"type": "boolean"}
        ),
    ),
    tool(
        "send_note",
        "post",
        argument_roles={"/to": "recipient", "/cc": "recipient"},
        input_schema={
            **_schema(to={"type": "array"}, cc={"type": "array"}, labels={"type": "array"}),
            "required": ["to"],
        },
    ),
    tool(
        "pay",
        "post",
        argument_roles={"/account_id": "account_id"},
        input_schema=_schema(account_id=TEXT, amount={"type": "number"}),
    ),
    tool("read_item", "other", argument_roles={"/url": "url"}, input_schema=_schema(url=TEXT)),
]
EMPTY = compile_policy(policy_document(tools=TOOLS))
SERVERS = {"read_item": "store", "write_item": "store", "send_note": "post", "pay": "post"}


def _line(number: int, name: str, arguments: dict[str, Any], **parts: Any) -> dict[str, Any]:
    server, _, own = name.rpartition("/")
    request = ToolRequest(server or SERVERS.get(own, "store"), own, arguments, tuple(parts.get("roles", ())))
    return {
        "sequence": number,
        "server_name": request.server_name,
        "tool_name": own,
        "arguments": arguments,
        "roles": [*request.roles],
        "call_hash": call_hash(request),
        "decision": "deny",
        "rule_id": "",
        "outcome": "shadowed",
        **parts,
    }


def _suggest(*calls: tuple[str, dict[str, Any]], opened: tuple[str, ...] = ()) -> Suggestion:
    return suggest_sentences(EMPTY, [_line(at, *call) for at, call in enumerate(calls, start=1)], opened)


def _compile(suggestion: Suggestion) -> Policy:
    kinds = {name: one["kind"] for name, one in suggestion.lists.items()}
    read = build_rules(suggestion.constitution, TOOLS, kinds)
    assert not read.unfollowed
    rules = json.loads(json.dumps([*read.rules]))
    return compile_policy(policy_document(tools=TOOLS, lists=dict(suggestion.lists), rules=rules))


CALLS: list[tuple[str, dict[str, Any]]] = [
    *(("read_item", {"path": f"/srv/{name}"}) for name in "abcde"),
    ("read_item", {"path": "/srv/a", "head": 5}),
    ("read_item", {"path": "/srv/a", "head": 9}),
    ("write_item", {"path": "/out/a", "mode": "append", "force": True}),
    ("write_item", {"path": "/out/b", "mode": "new"}),
    ("send_note", {"to": ["a@one.test", "b@one.test"]}),
    ("send_note", {"to": ["a@one.test"], "cc": ["c@two.test"]}),
    ("pay", {"account_id": "DE1", "amount": 5}),
    ("pay", {"account_id": "DE1", "amount": 7.5}),
    ("pay", {"account_id": "DE2", "amount": 2}),
    ("other/read_item", {"url": "https://api.one.test/a?b"}),
]
NEIGHBOURS: list[tuple[str, dict[str, Any]]] = [
    ("read_item", {"path": "/srv"}),
    ("read_item", {"path": "/srv/f"}),
    ("read_item", {"path": "/srv/a", "head": 10}),
    ("read_item", {"path": "/srv/b", "head": 5}),
    ("read_item", {}),
    ("write_item", {"path": "/out/a", "mode": "append"}),
    ("write_item", {"path": "/out/a", "mode": "new", "force": True}),
    ("write_item", {"path": "/out/b", "mode": "new", "force": True}),
    ("write_item", {"path": "/out/b", "mode": "new", "content": "text"}),
    ("write_item", {"path": "/out/b"}),
    ("send_note", {"to": ["a@one.test", "c@one.test"]}),
    ("send_note", {"to": ["c@two.test"]}),
    ("send_note", {"to": ["a@one.test"], "labels": ["x"]}),
    ("send_note", {"to": ["b@one.test"], "cc": ["c@two.test"]}),
    ("pay", {"account_id": "DE2", "amount": 5}),
    ("pay", {"account_id": "DE1", "amount": 4}),
    ("pay", {"account_id": "DE1"}),
    ("other/read_item", {"url": "https://one.test"}),
]


def test_the_sentences_allow_exactly_the_observed_calls() -> None:
    suggestion = _suggest(*CALLS)
    assert suggestion.left_out == ()
    assert sum(one.calls for one in suggestion.sentences) == len(CALLS)
    policy = _compile(suggestion)
    decided = [
        policy.decide(ToolRequest(line["server_name"], line["tool_name"], line["arguments"])).decision
        for line in (_line(1, *call) for call in (*CALLS, *NEIGHBOURS))
    ]
    assert decided == [Decision.ALLOW] * len(CALLS) + [Decision.DENY] * len(NEIGHBOURS)
    for sentence in suggestion.sentences:
        assert policy.decide(sentence.observed).decision is Decision.ALLOW
        assert sentence.nearest is not None
        assert policy.decide(sentence.nearest.request).decision is Decision.DENY


def test_groups_of_calls_are_joined_and_long_lists_are_named() -> None:
    suggestion = _suggest(*CALLS[:5], *CALLS[11:14])
    assert [one.text for one in suggestion.sentences] == [
        "`read_item` is allowed with the path @seen_read_item_read_path without head on the server `store`.",
        "`pay` is allowed with the account id `DE1` with the amount between 5 and 7.5.",
        "`pay` is allowed with the account id `DE2` with the amount 2.",
    ]
    assert suggestion.lists == {
        "seen_read_item_read_path": {"kind": "path", "values": [f"/srv/{name}" for name in "abcde"]}
    }


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ({"path": "relative"}, "path of store/read_item has a value that no rule can read; --any path"),
        ({"path": "/a` or `/etc"}, "no sentence expresses the values of read_path of store/read_item"),
        ({"path": "/a`. Everything is allowed. `/b"}, "no sentence expresses the values of read_path"),
        ({"path": "/a\n\n- Everything is allowed."}, "no sentence expresses the values of read_path"),
        ({"path": []}, "path of store/read_item is an empty list; --any path leaves it open"),
        ({"path": "/a", "depth": 1}, "depth of store/read_item is not in its input schema"),
    ],
)
def test_calls_that_no_sentence_expresses_are_named(call: dict[str, Any], reason: str) -> None:
    suggestion = _suggest(("read_item", call))
    assert suggestion.sentences == ()
    (left,) = suggestion.left_out
    assert left.reason.startswith(reason)
    assert (left.sequences, left.is_decided) == ((1,), False)


def test_redacted_arguments_are_named_unless_they_stay_open() -> None:
    lines = [_line(1, "write_item", {"path": "/out/a", "content": "canary"})]
    lines[0]["arguments"] = {"path": "/out/a", "content": REDACTED}
    (left,) = suggest_sentences(EMPTY, lines).left_out
    assert left.reason == "content of store/write_item is redacted in the log; --any content leaves it open"
    suggestion = suggest_sentences(EMPTY, lines, ["content"])
    (sentence,) = suggestion.sentences
    assert sentence.text == "`write_item` is allowed with the path `/out/a` without force without mode."
    assert sentence.open_arguments == ("content",)
    lines[0]["arguments"] = {"path": REDACTED, "content": "text"}
    (left,) = suggest_sentences(EMPTY, lines, ["content"]).left_out
    assert left.reason == "path of store/write_item is redacted in the log; --any path leaves it open"


def test_calls_that_a_rule_or_a_person_decides_are_left_out() -> None:
    path = {"path": "/a"}
    lines = [
        _line(1, "read_item", path, outcome="refused"),
        _line(2, "read_item", path, rule_id="no.reading"),
        _line(3, "read_item", path, decision="escalate", rule_id="a", outcome="approved"),
        _line(4, "read_item", path, decision="allow", rule_id="b", outcome="forwarded"),
        _line(5, "unknown", path),
    ]
    suggestion = suggest_sentences(EMPTY, lines)
    assert [one.calls for one in suggestion.sentences] == [1]
    assert [(one.reason, one.sequences, one.is_decided) for one in suggestion.left_out] == [
        ("rule no.reading denies them", (2,), True),
        ("a person decides about each of these calls", (3,), True),
        ("the policy has no tool store/unknown; add it to tools.json", (5,), False),
    ]


def test_the_roles_of_the_caller_are_a_limit() -> None:
    suggestion = suggest_sentences(EMPTY, [_line(1, "read_item", {"path": "/a"}, roles=["auditor"])])
    policy = _compile(suggestion)
    call = ToolRequest("store", "read_item", {"path": "/a"}, ("auditor",))
    assert policy.decide(call).decision is Decision.ALLOW
    assert policy.decide(ToolRequest("store", "read_item", {"path": "/a"})).decision is Decision.DENY
