"""Actions of a scenario as tools for a model, limited to what does not touch restricted state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.certification.drift import FALLING, RISING, find_compared_values, harmful_directions
from peripety.engine.lowering import find_target
from peripety.engine.rule_text import describe_condition, describe_effect
from peripety.engine.schemas import OUTCOME, schema_document
from peripety.errors import FailedPreconditionError
from peripety.gateway.message_normalization import to_wire_name
from peripety.gateway.request_checks import unsupported_tools
from peripety.gateway.types.message import Tool
from peripety.scenario.rule_graph.graph import Path, find_read_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.core.config import ProviderName


@dataclass(frozen=True, slots=True)
class PublicAction:
    """Public part of an action.

    Attributes:
        preconditions: the preconditions that read only public state.
        unseen_preconditions: what the others read, in words.
        effects: the effects on public state.
        derives: the derived values of the action; one that reads restricted state is reduced to its name.
    """

    preconditions: Mapping[str, Any]
    unseen_preconditions: tuple[str, ...]
    effects: tuple[Mapping[str, Any], ...]
    derives: Mapping[str, Any]


class PublicScenario:
    """Public view of a scenario.

    Args:
        spec: a valid scenario.
        viewer: an entity whose private state counts as public; None for no entity.
    """

    def __init__(self, spec: Mapping[str, Any], viewer: str | None = None) -> None:
        self._visibility = engine.Visibility(spec)
        self._viewer = viewer

    def filter_action(self, action: Mapping[str, Any]) -> PublicAction:
        """Return the public part of an action of the scenario."""
        variants = engine.list_variants(action)
        hidden = frozenset[str]().union(*(self._find_hidden_derives(variant) for variant in variants))
        conditions = _split_conjunction(action["preconditions"])
        each = zip(*(_split_conjunction(variant["preconditions"]) for variant in variants), strict=True)
        seen, unseen = [], []
        for one, meant in zip(conditions, each, strict=True):
            if self._can_see_reads(meant, hidden):
                seen.append(one)
            else:
                unseen.append(_name_reads(one))
        derives = {
            name: {"var": f"derives.{name}"} if name in hidden else logic
            for name, logic in (action.get("derives") or {}).items()
        }
        return PublicAction(
            preconditions=_join_conjunction(seen),
            unseen_preconditions=tuple(dict.fromkeys(unseen)),
            effects=tuple(
                self.filter_effects(action["effects"], [variant["effects"] for variant in variants]),
            ),
            derives=derives,
        )

    def filter_effects(
        self,
        effects: Sequence[Mapping[str, Any]],
        variants: Sequence[Sequence[Mapping[str, Any]]] = (),
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the effects that write only public state.

        A line of the log is left out: its text exists for the players once it is written, and not before. So
        is an effect with a condition, which may read restricted state.

        Args:
            effects: the effects.
            variants: the effects of each variant of the action, if it has some.
        """
        for one, *meant in zip(effects, *(variants or [effects]), strict=True):
            if one["op"] == "schedule":
                later = list(self.filter_effects(one["effects"], [other["effects"] for other in meant]))
                if later:
                    yield {**one, "effects": later}
            elif one["op"] != "addlog" and "when" not in one and all(map(self._can_see_writes, meant)):
                yield one

    def _find_hidden_derives(self, action: Mapping[str, Any]) -> frozenset[str]:
        """Return the derived values that read restricted state, directly or through other derived values."""
        derives: Mapping[str, Any] = action.get("derives") or {}
        hidden = frozenset[str]()
        while found := {
            name
            for name, logic in derives.items()
            if name not in hidden and not self._can_see_reads([logic], hidden)
        }:
            hidden |= found
        return hidden

    def _can_see_reads(self, logics: Iterable[Any], hidden_derives: frozenset[str]) -> bool:
        for logic in logics:
            if not all(self._visibility.shows_whole(path, self._viewer) for path in find_read_paths(logic)):
                return False
            for _, *names in find_read_paths(logic, "derives"):
                if hidden_derives.intersection(names[:1] or hidden_derives):
                    return False
        return True

    def _can_see_writes(self, effect: Mapping[str, Any]) -> bool:
        audiences = map(self._visibility.find_audience, _iter_targets(effect))
        return all(audience is None or self._viewer in audience for audience in audiences)


def _name_reads(logic: Any) -> str:
    """Return what a condition reads that is not public, without an id."""
    sections = {str(path[1]) if len(path) > 1 else "" for path in find_read_paths(logic)}
    return _STORY_SECTIONS.get(sections.pop(), _HIDDEN) if len(sections) == 1 else _HIDDEN


def _split_conjunction(logic: Mapping[str, Any]) -> list[Any]:
    """Return the conditions of a conjunction."""
    match logic:
        case {"and": [*conditions]}:
            return conditions
        case _:
            return [logic]


def _join_conjunction(conditions: list[Any]) -> Mapping[str, Any]:
    match conditions:
        case []:
            return {}
        case [dict(only)]:
            return only
        case _:
            return {"and": conditions}


def _iter_targets(effect: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the paths that an effect writes, each part of its value included."""
    target = find_target(effect)
    if target is not None:
        yield target
    elif "path" in effect:
        yield from _iter_written_paths(engine.parse_path(effect["path"]), effect.get("value"))


def _iter_written_paths(path: Path, value: Any) -> Iterator[Path]:
    """Yield a written path, and the paths below it that a value contains."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    for key, inner in items:
        yield from _iter_written_paths((*path, key), inner)


QUERY, ROLL = "query", "roll"
_HIDDEN = "hidden state"
_STORY_SECTIONS = {
    "clues": "what has been found out",
    "statements": "a statement",
    "promises": "a promise",
}
_ACTION = "action:{}"
# The maximum length of a description for all providers.
_MAX_DESCRIPTION = 1_024


@dataclass(frozen=True, slots=True)
class ScenarioTool:
    """Tool of a scenario.

    Attributes:
        tool: the tool definition for a model.
        action_id: the action that it executes; None for a tool of the engine.
    """

    tool: Tool
    action_id: str | None = None


def scenario_tools(spec: Mapping[str, Any], *, on_the_wire: bool = False) -> tuple[ScenarioTool, ...]:
    """Return a tool for each action in order, then `query` and `roll`.

    Args:
        spec: a valid scenario.
        on_the_wire: True for names in the character set of all providers. The gateway converts names itself,
            and reports calls under the original names.
    """
    hurts = harmful_directions(
        reading for loss in spec["loss_conditions"] for reading in find_compared_values(loss["when"])
    )
    public = PublicScenario(spec)
    tools = (*(_action_tool(action, public, hurts) for action in spec["actions"]), *_ENGINE_TOOLS)
    return tuple(map(_with_wire_names, tools)) if on_the_wire else tools


def require_supported(offered: Sequence[ScenarioTool], provider: ProviderName) -> None:
    """Validate tools for a provider.

    Raises:
        FailedPreconditionError: `TOOLS_UNSUPPORTED`: there are too many tools, or the provider does not
            support the name of a parameter.
    """
    wrong = list(unsupported_tools([one.tool for one in offered], provider))
    if wrong:
        raise FailedPreconditionError(
            f"{provider.value} does not support the tools of this scenario: {wrong[0].field}"
            f" {wrong[0].reason}; change the scenario, or use another provider",
            code="TOOLS_UNSUPPORTED",
            violations=wrong,
        )


def _with_wire_names(offered: ScenarioTool) -> ScenarioTool:
    return replace(offered, tool=replace(offered.tool, name=to_wire_name(offered.tool.name)))


def _action_tool(action: Mapping[str, Any], public: PublicScenario, hurts: Mapping[str, int]) -> ScenarioTool:
    description = " ".join(_action_sentences(action, public.filter_action(action), hurts))
    tool = Tool(_ACTION.format(action["id"]), _clip(description), _params_schema(action["params"]))
    return ScenarioTool(tool, action["id"])


def _action_sentences(
    action: Mapping[str, Any],
    public: PublicAction,
    hurts: Mapping[str, int],
) -> Iterator[str]:
    """Yield the description of an action for a model: its purpose, preconditions, price and effects."""
    name, description = action.get("name") or action["id"], action.get("description") or ""
    needed = describe_condition(public.preconditions)
    costs = [describe_effect(one, public.derives) for one in public.effects if _is_price(one, hurts)]
    others = [describe_effect(one, public.derives) for one in public.effects if not _is_price(one, hurts)]
    yield _sentence(name)
    if needed:
        yield f"Only when {needed}."
    if action.get("once"):
        yield "Only once."
    if public.unseen_preconditions:
        yield f"Has a precondition on {' and '.join(public.unseen_preconditions)}."
    if costs:
        yield f"Costs: {', '.join(costs)}."
    if others:
        yield f"Effects: {', '.join(others)}."
    if description:
        yield _sentence(description)


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _is_price(done: Mapping[str, Any], hurts: Mapping[str, int]) -> bool:
    """Return True if an effect is a step towards a loss, or reduces a quantity without a loss condition."""
    if done["op"] not in {"inc", "dec"} or isinstance(done["value"], str):
        return False
    rises = (done["value"] > 0) == (done["op"] == "inc")
    return (RISING if rises else FALLING) == hurts.get(done["path"], FALLING)


def _params_schema(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of parameters; each parameter is a schema already."""
    return _arguments_schema({name: dict(param) for name, param in params.items()}, required=sorted(params))


def _arguments_schema(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }


def _clip(text: str) -> str:
    return text if len(text) <= _MAX_DESCRIPTION else f"{text[: _MAX_DESCRIPTION - 1]}…"


def _engine_tools() -> tuple[ScenarioTool, ...]:
    path = {"type": "string", "maxLength": 512, "description": "A path such as state.a.b[2]; state for all."}
    query = Tool(
        QUERY,
        "Read a value of the state that is visible from here. Changes nothing.",
        _arguments_schema({"path": path}, required=["path"]),
    )
    asked: dict[str, Any] = schema_document(OUTCOME)["$defs"]["RollRequest"]
    roll = Tool(
        ROLL,
        "Roll a die of twenty faces against a difficulty, for what is uncertain. Changes nothing.",
        _arguments_schema(asked["properties"], asked["required"]),
    )
    return ScenarioTool(query), ScenarioTool(roll)


_ENGINE_TOOLS = _engine_tools()
