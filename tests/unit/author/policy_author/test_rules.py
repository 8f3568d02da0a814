"""Rules from a written policy without a model: what is understood, and that nothing else is allowed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from peripety.author.policy_author.rules import DerivedRules, build_rules
from peripety.engine import ToolRequest, compile_policy

NAMES = {"type": "object", "properties": {"path": {"type": "string"}, "max_items": {"type": "integer"}}}


def tool(name: str, *roles: str, server: str = "alpha", **more: Any) -> dict[str, Any]:
    annotated = [{"path": f"/{role}", "role": role} for role in roles]
    return {"server_name": server, "tool_name": name, "argument_roles": annotated, **more}


TOOLS = [
    tool("read_item", "read_path", description="Reads an item.", input_schema=NAMES, read_only=True),
    tool("write_item", "write_path", description="Writes an item."),
    tool("move_item", "read_path", "write_path", description="Moves an item elsewhere.", destructive=True),
    tool("fetch", "url", server="beta", description="Fetches a document by its location."),
    tool("tell_person", "recipient", server="beta", description="Passes words on to somebody."),
    tool("call_routine", "routine", server="beta"),
]
LISTS = {"known": "domain"}


def read(text: str) -> list[tuple[str, list[str], Any]]:
    """Return the decision, the tools and the argument conditions of each parsed rule."""
    found = build_rules(text, TOOLS, LISTS)
    assert not found.unfollowed
    return [told(rule) for rule in found.rules]


def unfollowed(found: DerivedRules) -> tuple[str, ...]:
    return tuple(one.sentence for one in found.unfollowed)


def told(rule: dict[str, Any]) -> tuple[str, list[str], Any]:
    when = {key: value for key, value in rule["when"].items() if key not in {"servers", "tools"}}
    return rule["then"], rule["when"]["tools"], when


def matcher(role: str, kind: str, among: list[str], quantifier: str) -> dict[str, Any]:
    return {"argument_roles": [role], "kind": kind, "among": among, "quantifier": quantifier}


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("Reading items is allowed.", "allow"),
        ("It may read items.", "allow"),
        ("The assistant can read any item.", "allow"),
        ("Items may be read without asking.", "allow"),
        ("Never read items.", "deny"),
        ("Items must not be read.", "deny"),
        ("Items may not be read.", "deny"),
        ("Reading items is not allowed.", "deny"),
        ("It is forbidden to read items.", "deny"),
        ("No item may be read.", "deny"),
        ("It can't read items.", "deny"),
        ("Ask before items are read.", "escalate"),
        ("Reading items must be approved by a person.", "escalate"),
        ("Items must not be read without approval.", "escalate"),
        ("Items may only be read after confirmation.", "escalate"),
        ("Never read items unless a person has approved it.", "escalate"),
        ("Anyone is welcome to read items.", "allow"),
        ("The assistant is free to read items.", "allow"),
        ("Please do not read items.", "deny"),
        ("Please ask a person before reading items.", "escalate"),
        ("Items are never read.", "deny"),
        ("Items are never read without approval.", "escalate"),
    ],
)
def test_a_sentence_decides_by_its_words(text: str, then: str) -> None:
    found = build_rules(text, TOOLS)
    assert [told(rule) for rule in found.rules] == [(then, ["read_item"], {})]


@pytest.mark.parametrize(
    ("text", "tools"),
    [
        ("`read_item` is allowed.", ["read_item"]),
        ("write_item and read_item are allowed.", ["read_item", "write_item"]),
        ("Moved items are fine.", ["move_item"]),
        ("All tools on the alpha server are allowed.", ["read_item", "write_item", "move_item"]),
        ("Read-only tools are allowed.", ["read_item"]),
        ("It may fetch.", ["fetch"]),
    ],
)
def test_a_tool_is_told_by_its_name_its_server_or_an_annotation(text: str, tools: list[str]) -> None:
    assert read(text) == [("allow", tools, {})]


@pytest.mark.parametrize(
    "text",
    [
        "Anything may be read.",
        "Those items may be read.",
        "Items may be read during business hours.",
        "Items may be read if they are old.",
        "Secret items may be read.",
        "Words may be passed on to somebody.",
        "Items may be read below the usual place.",
        "Items may be read at 5 places.",
        "Items may be read from /a, not /b.",
        "Items may be read from @unheard_of.",
        "Reading items is not forbidden.",
        "It need not ask before it reads items.",
        "Non-destructive tools are allowed.",
        "Items may be read; but only when it is dark.",
        "Other items may be read.",
        "Free items may be read.",
        "Welcome items may be read.",
        "Items may be read for 5 days at least once.",
        "It may fetch from http://127.1/x.",
        f"It may fetch from {'a' * 70}.test.",
        'It may call the routine "@known".',
        "Roles other than `keeper` may read items.",
        "All tools other than `call_routine` are allowed.",
        "All tools except call_routine are allowed.",
        "すべて許可。",
        "Be careful.",
        f"Items may be read {'really ' * 400}.",
    ],
)
def test_what_is_not_understood_to_its_end_allows_nothing_and_is_named(text: str) -> None:
    found = build_rules(text, TOOLS, LISTS)
    assert "allow" not in {rule["then"] for rule in found.rules}
    assert unfollowed(found) == (text,)


def test_what_stops_calls_stops_them_altogether_where_its_condition_is_not_understood() -> None:
    found = build_rules("Items must not be moved on weekends.", TOOLS)
    assert [told(rule) for rule in found.rules] == [("deny", ["move_item"], {})]
    assert unfollowed(found) == ("Items must not be moved on weekends.",)
    assert "principle" not in found.rules[0]


@pytest.mark.parametrize(
    "text",
    ["Never fetch from @unheard_of.", "Never fetch from http://127.1/.", "Never fetch /a."],
)
def test_what_stops_calls_stops_them_altogether_where_what_it_names_cannot_be_asked(text: str) -> None:
    found = build_rules(text, TOOLS, LISTS)
    assert [told(rule) for rule in found.rules] == [("deny", ["fetch"], {})]
    assert unfollowed(found) == (text,)


def test_a_prohibition_of_anything_stops_every_tool_where_what_it_names_cannot_be_asked() -> None:
    # It stopped nothing before, although the text forbids every call of the kind.
    found = build_rules("Nothing may be sent to http://127.1/.", TOOLS, LISTS)
    assert {(rule["then"], tool) for rule in found.rules for tool in rule["when"]["tools"]} == {
        ("deny", one["tool_name"]) for one in TOOLS
    }
    assert len(found.unfollowed) == 1


def test_a_permission_and_a_prohibition_in_one_sentence_have_the_same_subject() -> None:
    # It was not understood before; both halves are whole statements about items.
    assert read("Items must not be moved, but may be read.") == [
        ("deny", ["move_item"], {}),
        ("allow", ["read_item"], {}),
    ]


def test_an_exception_of_a_permission_takes_away_from_it() -> None:
    # It was not understood before.
    ((then, tools, when),) = read("Items may be read in /a unless they are in /b.")
    assert (then, tools) == ("allow", ["read_item"])
    assert when["arguments"] == [
        matcher("read_path", "path", ["/a"], "all"),
        matcher("read_path", "path", ["/b"], "none"),
    ]


def test_a_call_is_stopped_by_what_is_said_of_its_tool_but_not_let_pass() -> None:
    denied = build_rules("Never pass words on.", TOOLS)
    assert [told(rule) for rule in denied.rules] == [("deny", ["tell_person"], {})]
    assert build_rules("It may pass words on.", TOOLS).rules == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Items may be read below /a/b and /c.", matcher("read_path", "path", ["/a/b", "/c"], "all")),
        ("Items must not be read below /a.", matcher("read_path", "path", ["/a"], "any")),
        ("Items may be read except below /a.", matcher("read_path", "path", ["/a"], "none")),
        ("Items must not be read outside /a or /b.", matcher("read_path", "path", ["/a", "/b"], "not_all")),
        ("It may fetch from https://a.test/x?y.", matcher("url", "domain", ["a.test"], "all")),
        ("It may fetch from *.a.test, @known.", matcher("url", "domain", ["*.a.test", "@known"], "all")),
        ("It may tell a person at a.test.", matcher("recipient", "email", ["*@a.test"], "all")),
        ("It may tell persons like b@a.test.", None),
        ("It may tell the person b@a.test.", matcher("recipient", "email", ["b@a.test"], "all")),
        ('It may call the routine "one".', matcher("routine", "identifier", ["one"], "all")),
    ],
)
def test_what_is_named_exactly_is_asked_of_the_arguments(text: str, expected: Any) -> None:
    rules = build_rules(text, TOOLS, LISTS).rules
    assert [rule["when"]["arguments"] for rule in rules] == ([[expected]] if expected else [])


def test_only_also_denies_everything_else() -> None:
    assert read("Items may only be read below /a.") == [
        ("deny", ["read_item"], {"arguments": [matcher("read_path", "path", ["/a"], "not_all")]}),
        ("allow", ["read_item"], {"arguments": [matcher("read_path", "path", ["/a"], "all")]}),
    ]


def test_a_duty_denies_what_does_not_fulfil_it() -> None:
    assert read("Reads of items must be below /a.") == [
        ("deny", ["read_item"], {"arguments": [matcher("read_path", "path", ["/a"], "not_all")]}),
    ]


def test_callers_are_told_by_their_roles() -> None:
    denied, allowed = read("Only callers with the role `keeper` may read items.")
    assert allowed == ("allow", ["read_item"], {"roles": ["keeper"]})
    assert denied == (
        "deny",
        ["read_item"],
        {"logic": {"!": [{"or": [{"in": ["keeper", {"var": "roles"}]}]}]}},
    )


_HOLDS_NOT = {"logic": {"!": [{"or": [{"in": ["context.known", {"var": "roles"}]}]}]}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Items may be read if `context.known` holds.", [("allow", {"roles": ["context.known"]})]),
        (
            "Items may be read if `context.known` or `context.b` holds.",
            [("allow", {"roles": ["context.known"]}), ("allow", {"roles": ["context.b"]})],
        ),
        ("Items must not be read unless `context.known` holds.", [("deny", _HOLDS_NOT)]),
        ("Reading items needs approval unless `context.known` holds.", [("escalate", _HOLDS_NOT)]),
        (
            "Items may only be read if `context.known` holds.",
            [("deny", _HOLDS_NOT), ("allow", {"roles": ["context.known"]})],
        ),
    ],
)
def test_context_is_a_condition(text: str, expected: list[tuple[str, Any]]) -> None:
    assert read(text) == [(then, ["read_item"], when) for then, when in expected]


@pytest.mark.parametrize(
    "text",
    [
        "Items may be read unless `context.known` holds.",
        "Items must not be read if `context.known` holds.",
        "Items may be read by callers without the role `context.known`.",
        "Reading items needs approval if `context.known` holds.",
    ],
)
def test_context_that_is_not_supplied_never_allows_more(text: str) -> None:
    found = build_rules(text, TOOLS)
    assert unfollowed(found) == (text,)
    assert all(rule["then"] != "allow" for rule in found.rules)


def test_a_bound_lets_nothing_pass_that_leaves_the_number_out() -> None:
    (denied, (_, _, when)) = read("At most 1,000 items may be read.")
    assert denied == ("deny", ["read_item"], {"logic": {">": [{"var": "arguments.max_items"}, 1000]}})
    bounded = {"<=": [{"var": "arguments.max_items"}, 1000]}
    assert when["logic"] == {"and": [{"!": [{"missing": ["arguments.max_items"]}]}, bounded]}
    ((_, _, when),) = read("Never read more than 10 items.")
    assert when["logic"] == {">": [{"var": "arguments.max_items"}, 10]}


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("Items may be read. No more than 10 items may be read.", "deny"),
        ("Items may be read. It may read no more than 10 items.", "deny"),
        ("Items may be read. Items may be read, but no more than 10 items.", "deny"),
        ("Items may be read. No more than 10 items may be read without approval.", "escalate"),
        ("Items may be read. Up to 10 items may be read.", "allow"),
        ("Items may be read. Items below 10 may be read.", "allow"),
        ("Items may be read. Reading less than 5 items or more than 10 items is forbidden.", "deny"),
        ("Items may be read. Reading items of less than 5 or more than 10 is forbidden.", "deny"),
    ],
)
def test_a_permission_that_limits_a_number_denies_the_others(text: str, then: str) -> None:
    derived = build_rules(text, TOOLS)
    assert not derived.unfollowed
    document = {"policy_version": "1.0", "id": "a", "name": "a", "tools": TOOLS, "rules": [*derived.rules]}
    call = ToolRequest("alpha", "read_item", {"path": "/a", "max_items": 11})
    assert compile_policy(json.dumps(document)).decide(call).decision.value == then


@pytest.mark.parametrize(
    ("text", "then", "quantifier"),
    [
        ("Outside /a, items must not be written.", "deny", "not_all"),
        ("Outside of /a, items may be written.", "allow", "none"),
        ("Below /a, items must not be written.", "deny", "any"),
        ("Below /a, items may be written.", "allow", "all"),
    ],
)
def test_a_place_in_front_limits_like_one_behind(text: str, then: str, quantifier: str) -> None:
    where = {"arguments": [matcher("write_path", "path", ["/a"], quantifier)]}
    assert read(text) == [(then, ["write_item"], where)]


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("Below /a, items may be read, and items may be written.", 2),
        ("If they are below /a, items may be read and may be written.", 2),
        ("Unless they are below /a, items may be read, and writing items is allowed.", 2),
        ("Below /a, items may be read, but items must not be written.", 1),
        ("Items may be read, and may be written if they are below /a.", 1),
    ],
)
def test_a_condition_in_front_is_one_of_each_permission(text: str, conditions: int) -> None:
    assert sum("arguments" in when for _, _, when in read(text)) == conditions


PARCELS = tool(
    "send_parcel",
    input_schema={
        "properties": {
            "zone": {"enum": ["zone-1", "zone-2"]},
            "fee": {"type": "number"},
            "wait_minutes": {"type": "integer"},
            "share_percent": {"type": "number"},
        }
    },
)
FOREIGN_PARCELS = tool(
    "send_parcel",
    input_schema={"properties": {"fee": {"type": "number"}, "currency": {"enum": ["USD", "EUR"]}}},
)


def at_most(name: str, number: float) -> dict[str, Any]:
    path = f"arguments.{name}"
    return {"logic": {"and": [{"!": [{"missing": [path]}]}, {"<=": [{"var": path}, number]}]}}


def above(name: str, number: float) -> dict[str, Any]:
    return {"logic": {">": [{"var": f"arguments.{name}"}, number]}}


@pytest.mark.parametrize(
    ("text", "then", "when"),
    [
        ("Parcels of up to $50 may be sent.", "allow", at_most("fee", 50)),
        ("Parcels of up to 50 dollars may be sent.", "allow", at_most("fee", 50)),
        ("Parcels above \u20ac1,000.50 must not be sent.", "deny", above("fee", 1000.5)),
        ("Parcels of more than 15% must not be sent.", "deny", above("share_percent", 15)),
        ("Parcels of more than 2 hours must not be sent.", "deny", above("wait_minutes", 120)),
        ("Parcels longer than 1.5 hours need approval.", "escalate", above("wait_minutes", 90)),
        ("Parcels may last at most 2 hours.", "deny", above("wait_minutes", 120)),
        ("Parcels are limited to $50.", "deny", above("fee", 50)),
        ("Parcels may not exceed 2 hours.", "deny", above("wait_minutes", 120)),
        (
            "Parcels must not be sent to zone-1.",
            "deny",
            {"logic": {"in": [{"var": "arguments.zone"}, ["zone-1"]]}},
        ),
    ],
)
def test_a_number_with_its_unit_belongs_to_an_argument(text: str, then: str, when: dict[str, Any]) -> None:
    derived = build_rules(text, [PARCELS])
    assert [told(one) for one in derived.rules] == [(then, ["send_parcel"], when)]
    assert not derived.unfollowed


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("Parcels above \u00a350 must not be sent.", FOREIGN_PARCELS),
        (
            "Parcels above $50 must not be sent.",
            tool("send_parcel", input_schema={"properties": {"parts": {"type": "integer"}}}),
        ),
        (
            "Parcels of up to $50 may be sent.",
            tool("send_parcel", input_schema={"properties": {"fee_cents": {"type": "integer"}}}),
        ),
        ("Parcels of up to $50% may be sent.", PARCELS),
        ("Parcels must not be sent to depot-9.", tool("send_parcel", "parcel_id")),
        ("Parcels may last more than 2 hours.", PARCELS),
        ("Parcels of less than 5 more than 9 must not be sent.", PARCELS),
        ("Parcels may be sent within 2 hours.", PARCELS),
    ],
)
def test_a_unit_that_no_argument_has_is_not_followed(text: str, document: dict[str, Any]) -> None:
    assert unfollowed(build_rules(text, [document])) == (text,)


def test_a_sign_of_a_currency_stands_for_its_code() -> None:
    (rule,) = build_rules("Parcels above $50 must not be sent.", [FOREIGN_PARCELS]).rules
    dollars = {"in": [{"var": "arguments.currency"}, ["USD"]]}
    assert rule["when"]["logic"] == {"and": [dollars, above("fee", 50)["logic"]]}


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("The assistant is authorized to read items.", ["allow"]),
        ("The assistant is not authorised to read items.", ["deny"]),
        ("All callers are entitled to read items.", ["allow"]),
        ("Items may be read subject to approval by a person.", ["escalate"]),
        ("Subject to approval, items may be read.", ["escalate"]),
        ("Items must not be read at all.", ["deny"]),
        ("Items must not be read under any circumstances.", ["deny"]),
        ("Under no circumstances may items be read.", ["deny"]),
        ("In no case shall the assistant read items.", ["deny"]),
        ("Items may be read anywhere except below /a.", ["allow"]),
        ("Items may be read below /a and nowhere else.", ["deny", "allow"]),
        ("Items are only to be read below /a.", ["deny", "allow"]),
        ("Night managers may read items.", ["allow"]),
        ("Only night managers may read items.", ["deny", "allow"]),
    ],
)
def test_a_common_wording_is_followed(text: str, then: list[str]) -> None:
    assert [(decision, tools) for decision, tools, _ in read(text)] == [(one, ["read_item"]) for one in then]


def test_two_numbers_with_a_unit_are_one_range() -> None:
    (((then, _, when),)) = read("At least 5 items and at most 9 items may be read.")
    path = "arguments.max_items"
    least, most = (
        {"and": [{"!": [{"missing": [path]}]}, {sign: [{"var": path}, number]}]}
        for sign, number in ((">=", 5), ("<=", 9))
    )
    assert (then, when) == ("allow", {"logic": {"and": [least, most]}})


@pytest.mark.parametrize(
    "text", ["Items may be moved if the target is below /a.", "Items may be moved to /a."]
)
def test_a_condition_names_one_of_several_paths(text: str) -> None:
    roles = [{"path": "/path", "role": "read_path"}, {"path": "/target", "role": "write_path"}]
    schema = {"properties": {"path": {"type": "string"}, "target": {"type": "string"}}}
    move = {**tool("move_item", input_schema=schema), "argument_roles": roles}
    (rule,) = build_rules(text, [move]).rules
    assert rule["when"]["arguments"] == [matcher("write_path", "path", ["/a"], "all")]


@pytest.mark.parametrize(
    "text",
    [
        "Night guests and managers may read items.",
        "Night managers must not read items.",
        "Anyone except night managers may read items.",
    ],
)
def test_a_role_of_several_words_never_allows_more(text: str) -> None:
    assert unfollowed(build_rules(text, TOOLS)) == (text,)


def test_what_is_not_allowed_is_denied_last() -> None:
    rules = read("Anything that is not explicitly allowed is forbidden. Items may be read.")
    assert rules == [("allow", ["read_item"], {}), *(("deny", tools, {}) for _, tools, _ in rules[1:])]
    assert "read_item" in rules[1][1]


def test_a_condition_behind_two_permissions_without_a_comma_is_not_followed() -> None:
    assert unfollowed(build_rules("Items may be read and may be written if they are below /a.", TOOLS))


def test_not_behind_a_permission_is_about_the_same_callers() -> None:
    denied, allowed = read("Managers may read items, but not write them.")
    assert denied == ("deny", ["write_item"], {"roles": ["manager"]})
    assert allowed == ("allow", ["read_item"], {"roles": ["manager"]})


def test_approval_in_front_escalates() -> None:
    for text in ("With approval, items may be read.", "Without approval, items must not be read."):
        assert [told[0] for told in read(text)] == ["escalate"]


ORDERS = [
    tool(
        "order_crate",
        input_schema={"properties": {"mode": {"enum": ["bulk", "token"]}, "parts": {"type": "integer"}}},
    ),
    tool("issue_token", input_schema={"properties": {"weight": {"type": "integer"}}}),
    tool(
        "order_box",
        input_schema={"properties": {"width": {"type": "integer"}, "height": {"type": "integer"}}},
    ),
]


@pytest.mark.parametrize("text", ["Tokens must not be more than 5.", "Tokens must be at most 5."])
def test_an_object_of_a_tool_is_not_a_value_of_another_tool(text: str) -> None:
    (rule,) = build_rules(text, ORDERS).rules
    assert told(rule) == ("deny", ["issue_token"], {"logic": {">": [{"var": "arguments.weight"}, 5]}})


def test_a_prohibition_does_not_skip_a_tool_whose_argument_is_not_clear() -> None:
    found = build_rules("Orders of more than 5 are forbidden.", ORDERS)
    assert unfollowed(found)
    assert told(found.rules[0]) == ("deny", ["order_crate", "order_box"], {})


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("Managers may read items. All other calls are allowed.", ["write_item", "move_item"]),
        ("Items may be read except below /a. Everything else is fine.", ["write_item", "move_item"]),
        (
            "Items below /a must not be read. Anything else is allowed.",
            ["read_item", "write_item", "move_item"],
        ),
    ],
)
def test_everything_else_leaves_out_what_another_sentence_permits(text: str, allowed: list[str]) -> None:
    derived = build_rules(text, TOOLS[:3])
    assert not derived.unfollowed
    assert told(derived.rules[-1]) == ("allow", allowed, {})


@pytest.mark.parametrize("first", ["Strangers may polish items.", "Items may be read sparingly."])
def test_everything_else_is_not_allowed_beside_a_sentence_that_is_not_followed(first: str) -> None:
    derived = build_rules(f"{first} Everything else is allowed.", TOOLS)
    assert unfollowed(derived) == (first, "Everything else is allowed.")
    assert all(rule["then"] != "allow" for rule in derived.rules)


def test_a_tool_that_is_named_whole_is_not_all_of_its_server() -> None:
    tools = [tool("make_item", server="items"), tool("make_list", server="items")]
    assert [told(one)[:2] for one in build_rules("Items may be made.", tools).rules] == [
        ("allow", ["make_item"])
    ]


@pytest.mark.parametrize("text", ["Non-managers may not read items.", "Reading items needs no approval."])
def test_a_word_that_negates_is_not_left_out(text: str) -> None:
    assert unfollowed(build_rules(text, TOOLS)) == (text,)


def test_a_way_of_using_an_argument_tells_the_tools_that_have_it() -> None:
    assert read("Nothing may be written below /a.") == [
        ("deny", ["write_item", "move_item"], {"arguments": [matcher("write_path", "path", ["/a"], "any")]}),
    ]


def test_the_stricter_comes_first_and_the_rest_last_in_whatever_order_they_are_said() -> None:
    text = """
# Rules

Everything else must be approved. It may read items.
- Ask before items are written.
- Items must not be moved.
"""
    rules = build_rules(text, TOOLS[:3]).rules
    assert [rule["then"] for rule in rules] == ["deny", "escalate", "allow", "escalate"]
    assert rules[-1]["when"]["tools"] == ["read_item", "write_item", "move_item"]


def test_items_of_a_list_are_read_behind_the_line_that_opens_it() -> None:
    text = "It may:\n\n- read items\n- write items\n\nIt must never:\n1. move\n   items"
    assert [told[:2] for told in read(text)] == [
        ("deny", ["move_item"]),
        ("allow", ["read_item"]),
        ("allow", ["write_item"]),
    ]


def test_a_rule_names_its_sentence_and_says_that_no_model_wrote_it() -> None:
    (rule,) = build_rules("Items may be read.", TOOLS).rules
    assert rule["id"] == "alpha.1.allow"
    assert rule["principle"] == "Items may be read."
    assert "(offline, no model)" in rule["description"]


def test_each_server_has_rules_of_its_own() -> None:
    tools = [tool("read_item"), tool("read_item", server="a strange server: ü")]
    rules = build_rules("Items may be read.", tools).rules
    assert [rule["id"] for rule in rules] == ["alpha.1.allow", "a-strange-server.1b.allow"]
    assert [rule["when"]["servers"] for rule in rules] == [["alpha"], ["a strange server: ü"]]


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "# Only a heading", ":", "- ", "※ may ※", "`", '"' * 99, "@@@ /// ..."],
)
def test_no_text_is_too_odd(text: str) -> None:
    assert build_rules(text, TOOLS).rules == ()


@pytest.mark.slow_after(12, reason="reads a sentence many times")
@pytest.mark.parametrize("word", ["glimmering", "own", "unless", "7", "if", "not", "other", "without"])
@pytest.mark.parametrize(
    "text",
    [
        "It may read items.",
        "Items may only be read below /a and /b.",
        "It may fetch from a.test or @known.",
        "At most 5 items may be read.",
        "All tools on the alpha server are allowed.",
        "Callers with the role `keeper` may read items.",
        "Read-only tools are allowed.",
    ],
)
def test_one_more_word_that_says_something_takes_an_allowance_away(text: str, word: str) -> None:
    words = text.removesuffix(".").split()
    allowed = [
        told
        for place in range(len(words) + 1)
        for told in build_rules(f"{' '.join([*words[:place], word, *words[place:]])}.", TOOLS, LISTS).rules
        if told["then"] == "allow"
    ]
    assert build_rules(text, TOOLS, LISTS).rules
    for rule in allowed:
        assert rule["when"].get("logic") or rule["when"].get("arguments"), rule


OPTIONAL = {
    "server_name": "alpha",
    "tool_name": "send_note",
    "input_schema": {
        "type": "object",
        "properties": {"body": {"type": "string"}, "attachments": {"type": "array"}},
        "required": ["body"],
    },
}


@pytest.mark.parametrize(
    ("text", "bare", "filled"),
    [
        ("Notes may be sent without attachments.", "allow", "deny"),
        ("Notes may be sent with attachments.", "deny", "allow"),
        ("Notes may be sent unless they are sent with attachments.", "escalate", "escalate"),
        ("Notes may be sent if attachments are given.", "deny", "allow"),
        ("Notes may be sent if attachments are not given.", "allow", "deny"),
        ("Notes may be sent if a body is given.", "deny", "deny"),
        ("Notes may be sent. Notes must not have attachments.", "allow", "deny"),
        ("Notes may be sent. Notes must not be sent without attachments.", "deny", "allow"),
    ],
)
def test_an_optional_argument_is_set_or_not(text: str, bare: str, filled: str) -> None:
    rules = [*build_rules(text, [OPTIONAL]).rules]
    document = {"policy_version": "1.0", "id": "a", "name": "a", "tools": [OPTIONAL], "rules": rules}
    decide = compile_policy(json.dumps(document)).decide
    calls = (
        ({"body": "x"}, bare),
        ({"body": "x", "attachments": []}, bare),
        ({"body": "x", "attachments": ["y"]}, filled),
    )
    for arguments, expected in calls:
        assert decide(ToolRequest("alpha", "send_note", arguments)).decision.value == expected


CRATES = {
    "server_name": "alpha",
    "tool_name": "order_crate",
    "argument_roles": [{"path": "/crate", "role": "crate_id"}, {"path": "/person", "role": "person_id"}],
    "input_schema": {
        "type": "object",
        "properties": {
            "crate": {"type": "string"},
            "person": {"type": "string"},
            "count": {"type": "integer"},
            "days": {"type": "integer"},
        },
        "required": ["crate", "person", "count", "days"],
    },
}


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("Crates may be ordered for 10 days at most.", {"a10", "b10"}),
        ("Crates may be ordered for 10 days or less.", {"a10", "b10"}),
        ("Crates may be ordered for 11 days or more.", {"a11", "b11"}),
        ("Crates may be ordered. Crates must not be ordered for 11 days or more.", {"a10", "b10"}),
        ("Crates other than `a` may be ordered.", {"b10", "b11"}),
        ("Crates may be ordered. No crates other than `a` or `c` may be ordered.", {"a10", "a11"}),
        ("Crates may be ordered. Order crates for 10 days only.", {"a10", "b10"}),
        ("Crates may be ordered. Crates are never ordered for 11 days.", {"a10", "b10"}),
        ("Crates may be ordered. Crates are never ordered except for 10 days.", {"a10", "b10"}),
        ("Orders other than `a` may be ordered.", set()),
        ("Crates may be ordered for 10 days at most 5 times.", set()),
    ],
)
def test_values_and_bounds_behind_their_nouns_are_followed(text: str, allowed: set[str]) -> None:
    rules = [*build_rules(text, [CRATES]).rules]
    document = {"policy_version": "1.0", "id": "a", "name": "a", "tools": [CRATES], "rules": rules}
    decide = compile_policy(json.dumps(document)).decide
    decided = {
        f"{crate}{days}": decide(
            ToolRequest("alpha", "order_crate", {"crate": crate, "person": "p", "count": 1, "days": days})
        ).decision.value
        for crate in "ab"
        for days in (10, 11)
    }
    assert {name for name, decision in decided.items() if decision == "allow"} == allowed


@pytest.mark.parametrize("number", [3, 4, 12, 60])
def test_a_long_list_of_values_is_followed_like_a_short_one(number: int) -> None:
    paths = [f"/a{at}" for at in range(number)]
    listed = f"{', '.join(paths[:-1])} or {paths[-1]}"
    for text, quantifier in (
        (f"Items may be read below {listed}.", "all"),
        (f"Items must not be read below {listed}.", "any"),
    ):
        derived = build_rules(text, TOOLS[:1])
        assert not derived.unfollowed
        (rule,) = derived.rules
        (matcher,) = rule["when"]["arguments"]
        assert (matcher["among"], matcher["quantifier"]) == (paths, quantifier)
    derived = build_rules(f"Items may be read below {listed} and later.", TOOLS[:1])
    assert (derived.rules, len(derived.unfollowed)) == ((), 1)
