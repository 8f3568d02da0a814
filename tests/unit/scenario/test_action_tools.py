"""Actions as tools: descriptions for a model, and accepted arguments."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
import pytest

from peripety import engine
from peripety.core.config import ProviderName
from peripety.errors import FailedPreconditionError, Severity
from peripety.gateway.message_normalization import ToolNames
from peripety.scenario.action_tools import PublicScenario, require_supported, scenario_tools
from peripety.scenario.spec_generator.generator import generate_spec
from support.engine.specs import action, as_bytes, at_most, never, program, spec

ON_THE_WIRE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def described(*effects: dict[str, Any], **more: Any) -> str:
    acting = action("act", list(effects)) | more
    losses = [at_most("low", "state.a", 0), {"id": "high", "when": {">=": [{"var": "state.b"}, 9]}}]
    return scenario_tools(spec(actions=[acting], loss_conditions=losses))[0].tool.description


def moved(op: str, name: str, value: float | str = 1) -> dict[str, Any]:
    return {"op": op, "path": f"state.{name}", "value": value}


def test_actions_come_in_their_order_and_the_engines_own_tools_last() -> None:
    tools = scenario_tools(spec(actions=[action("two"), action("one")]))
    assert [tool.tool.name for tool in tools] == ["action:two", "action:one", "query", "roll"]
    assert [tool.action_id for tool in tools] == ["two", "one", None, None]


def test_a_description_says_what_it_takes_what_it_costs_and_what_it_does() -> None:
    told = described(
        moved("dec", "a", 2),
        moved("inc", "b"),
        moved("inc", "a", 3),
        moved("dec", "b"),
        name="Do it",
        description="In full",
        preconditions={">": [{"var": "state.a"}, 2]},
    )
    assert told == "Do it. Only when a > 2. Costs: a -2, b +1. Effects: a +3, b -1. In full."


SEEN = {">": [{"var": "state.a"}, 2]}
UNSEEN = {"<": [{"var": "state.hidden.h"}, 9]}
MEMBERS = {"op": "patch", "path": "state.b", "value": {"x": 1, "y": 2}}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"effects": [moved("inc", "hidden.h"), moved("inc", "a")]}, "act. Effects: a +1."),
        ({"effects": [moved("inc", "private.p.h"), moved("inc", "b.y")]}, "act."),
        ({"effects": [MEMBERS]}, "act."),
        ({"effects": [MEMBERS | {"op": "set"}]}, "act."),
        (
            {"effects": [{"op": "schedule", "id": "s", "after": 2, "effects": [moved("inc", "hidden.h")]}]},
            "act.",
        ),
        (
            {"effects": [moved("inc", "a", "gain")], "derives": {"gain": {"var": "state.hidden.h"}}},
            "act. Effects: a + gain.",
        ),
        (
            {"preconditions": {"and": [SEEN, UNSEEN]}},
            "act. Only when a > 2. Has a precondition on hidden state.",
        ),
        ({"preconditions": UNSEEN}, "act. Has a precondition on hidden state."),
        ({"preconditions": {"or": [SEEN, UNSEEN]}}, "act. Has a precondition on hidden state."),
    ],
)
def test_what_not_everybody_sees_is_not_told(changed: dict[str, Any], told: str) -> None:
    state = {"a": 9, "b": {"x": 0, "y": 0}, "hidden": {"h": 1}, "private": {"p": {"h": 1}}}
    scenario = spec(
        state=state,
        actions=[action("act") | changed],
        entities=[{"id": "p", "kind": "person"}],
        visibility=[{"path": "state.b.y", "to": ["p"]}],
    )
    assert [
        found.code for found in engine.validate(as_bytes(scenario)) if found.severity is Severity.ERROR
    ] == []
    assert scenario_tools(scenario)[0].tool.description == told


def test_what_nothing_is_lost_by_costs_where_it_falls() -> None:
    assert described(moved("dec", "c"), moved("inc", "d")) == "act. Costs: c -1. Effects: d +1."


def test_an_action_without_anything_to_say_has_its_name() -> None:
    assert described() == "act."


def test_no_description_is_longer_than_providers_take() -> None:
    told = described(moved("dec", "a"), description="x" * 5_000)
    assert len(told) == 1_024
    assert told.startswith("act. Costs: a -1. x")


def test_a_call_that_the_schema_takes_is_legal_and_another_is_not() -> None:
    params = {
        "count": {"type": "integer", "minimum": 1, "maximum": 3},
        "kind": {"type": "string", "enum": ["x", "y"]},
        "note": {"type": "string", "maxLength": 2},
        "sure": {"type": "boolean"},
    }
    losses = [never("one"), never("two")]
    scenario = spec(actions=[action("act", params=params)], loss_conditions=losses)
    (tool, *_) = scenario_tools(scenario)
    schema = jsonschema.Draft202012Validator(dict(tool.tool.input_schema))
    rules = program(scenario)
    good: dict[str, Any] = {"count": 2, "kind": "y", "note": "ok", "sure": False}
    calls = [good, *({**good, **wrong} for wrong in (
        {"count": 4}, {"count": 1.5}, {"kind": "z"}, {"note": "long"}, {"sure": 1}, {"more": 1},
    )), {"count": 2}]  # fmt: skip
    for call in calls:
        accepted = rules.act(rules.new_state(), "act", call).accepted
        assert schema.is_valid(call) == accepted == (call == good), call


@pytest.mark.parametrize("index", range(5))
def test_names_are_taken_by_every_provider_and_lead_back(index: int) -> None:
    scenario = engine.parse(generate_spec(3, index))
    plain, wired = scenario_tools(scenario), scenario_tools(scenario, on_the_wire=True)
    names = ToolNames(tool.tool.name for tool in plain)
    assert len({tool.tool.name for tool in wired}) == len(plain)
    for tool, told in zip(plain, wired, strict=True):
        assert ON_THE_WIRE.fullmatch(told.tool.name)
        assert names.from_wire(told.tool.name) == tool.tool.name
        assert (told.action_id, told.tool.input_schema) == (tool.action_id, tool.tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(dict(told.tool.input_schema))


def acts(count: int, param: str = "amount") -> dict[str, Any]:
    params = {param: {"type": "boolean"}}
    return spec(actions=[action(f"a{index}", params=params) for index in range(count)])


@pytest.mark.parametrize(
    ("scenario", "provider", "told"),
    [
        (acts(127), ProviderName.OPENAI, "are 129, and openai accepts at most 128"),
        (acts(511), ProviderName.GEMINI, "at most 512"),
        (acts(1, "größe"), ProviderName.ANTHROPIC, "'größe'"),
        (acts(1, "a" * 65), ProviderName.ANTHROPIC, "1 to 64"),
    ],
)
def test_what_a_provider_would_refuse_is_not_offered(
    scenario: dict[str, Any],
    provider: ProviderName,
    told: str,
) -> None:
    with pytest.raises(FailedPreconditionError, match=provider.value) as refused:
        require_supported(scenario_tools(scenario), provider)
    assert refused.value.code == "TOOLS_UNSUPPORTED"
    assert told in refused.value.violations[0].reason
    assert told in refused.value.message


@pytest.mark.parametrize(
    ("scenario", "provider"),
    [
        (acts(126), ProviderName.OPENAI),
        (acts(510), ProviderName.GEMINI),
        (acts(510, "größe"), ProviderName.OFFLINE),
        (acts(300, "a.b-c_d" + "e" * 57), ProviderName.ANTHROPIC),
    ],
)
def test_what_a_provider_takes_is_offered(scenario: dict[str, Any], provider: ProviderName) -> None:
    require_supported(scenario_tools(scenario), provider)


@pytest.mark.parametrize("hidden", ["state.said", "state.said.q"])
def test_a_path_with_a_parameter_is_public_if_it_is_for_every_value(hidden: str) -> None:
    path = "state.said[params.who]"
    ask = action(
        "ask",
        [{"op": "inc", "path": path, "value": 1}],
        params={"who": {"type": "string", "enum": ["p", "q"]}},
        preconditions={"<": [{"var": path}, 3]},
    )
    document = spec(spec_version="1.1", state={"a": 1, "said": {"p": 0, "q": 1}}, actions=[ask])
    seen = PublicScenario(document).filter_action(ask)
    assert (len(seen.effects), seen.unseen_preconditions) == (1, ())
    labelled = {**document, "visibility": [{"path": hidden, "to": "hidden"}]}
    seen = PublicScenario(labelled).filter_action(ask)
    assert (len(seen.effects), seen.unseen_preconditions) == (0, ("hidden state",))


@pytest.mark.parametrize("clue", ["mark", {"param": "which"}])
def test_an_effect_with_a_condition_is_left_out(clue: Any) -> None:
    when = {"===": [{"var": "state.hidden.owner"}, "canary"]}
    search = action(
        "search",
        [{"op": "reveal", "clue": clue, "when": when}, moved("inc", "a")],
        params={"which": {"type": "string", "enum": ["mark"]}},
    )
    document = spec(
        spec_version="1.1",
        state={"a": 9, "hidden": {"owner": "x"}},
        clues={"mark": {"text": "found"}},
        actions=[search],
    )
    assert [one.code for one in engine.validate(as_bytes(document)) if one.severity is Severity.ERROR] == []
    assert scenario_tools(document)[0].tool.description == "search. Effects: a +1."
