"""Actions of a scenario as tools for a model, and the tools of the engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.errors import FailedPreconditionError
from peripety.gateway.model import Tool
from peripety.gateway.tool_limits import not_taken
from peripety.gateway.tool_names import to_wire_name
from peripety.scenarios.phrases import condition, effect
from peripety.scenarios.public import Public
from peripety.scenarios.reading import FALLING, RISING, directions, readings
from peripety.sim.schemas import OUTCOME, schema_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.config import ProviderName
    from peripety.scenarios.public import PublicAction

__all__ = ["QUERY", "ROLL", "ScenarioTool", "require_taken", "scenario_tools"]

QUERY, ROLL = "query", "roll"
_ACTION = "action:{}"
# The maximum length of a description for all providers.
_LONGEST = 1_024


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
    hurts = directions(reading for loss in spec["loss_conditions"] for reading in readings(loss["when"]))
    public = Public(spec)
    tools = (*(_of_action(action, public, hurts) for action in spec["actions"]), *_OWN)
    return tuple(map(_renamed, tools)) if on_the_wire else tools


def require_taken(offered: Sequence[ScenarioTool], provider: ProviderName) -> None:
    """Validate tools for a provider.

    Raises:
        FailedPreconditionError: `TOOLS_NOT_TAKEN`: there are too many tools, or the provider does not support
            the name of a parameter.
    """
    wrong = list(not_taken([one.tool for one in offered], provider))
    if wrong:
        raise FailedPreconditionError(
            f"{provider.value} does not support the tools of this scenario: {wrong[0].field}"
            f" {wrong[0].reason}; change the scenario, or use another provider",
            code="TOOLS_NOT_TAKEN",
            violations=wrong,
        )


def _renamed(offered: ScenarioTool) -> ScenarioTool:
    return replace(offered, tool=replace(offered.tool, name=to_wire_name(offered.tool.name)))


def _of_action(action: Mapping[str, Any], public: Public, hurts: Mapping[str, int]) -> ScenarioTool:
    description = " ".join(_told(action, public.part_of(action), hurts))
    tool = Tool(_ACTION.format(action["id"]), _clipped(description), _schema_of(action["params"]))
    return ScenarioTool(tool, action["id"])


def _told(action: Mapping[str, Any], public: PublicAction, hurts: Mapping[str, int]) -> Iterator[str]:
    """Yield the description of an action for a model: its purpose, preconditions, price and effects."""
    name, description = action.get("name") or action["id"], action.get("description") or ""
    needed = condition(public.preconditions)
    costs = [effect(one, public.derives) for one in public.effects if _is_price(one, hurts)]
    others = [effect(one, public.derives) for one in public.effects if not _is_price(one, hurts)]
    yield _sentence(name)
    if needed:
        yield f"Only when {needed}."
    if public.has_secret_preconditions:
        yield "Has a precondition on hidden state."
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


def _schema_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of parameters; each parameter is a schema already."""
    return _arguments({name: dict(param) for name, param in params.items()}, required=sorted(params))


def _arguments(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _own_tools() -> tuple[ScenarioTool, ...]:
    path = {"type": "string", "maxLength": 512, "description": "A path such as state.a.b[2]; state for all."}
    query = Tool(
        QUERY,
        "Read a value of the state that is visible from here. Changes nothing.",
        _arguments({"path": path}, required=["path"]),
    )
    asked: dict[str, Any] = schema_document(OUTCOME)["$defs"]["RollRequest"]
    roll = Tool(
        ROLL,
        "Roll a die of twenty faces against a difficulty, for what is uncertain. Changes nothing.",
        _arguments(asked["properties"], asked["required"]),
    )
    return ScenarioTool(query), ScenarioTool(roll)


_OWN = _own_tools()
