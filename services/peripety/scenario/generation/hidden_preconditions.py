"""Check of a new document for preconditions that reveal what is hidden.

Players see which actions are legal. So a precondition on a value that no player sees reveals it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.engine.lowering import list_veiled_paths
from peripety.errors import Finding, Severity
from peripety.scenario.dry_run.drift import are_related, list_read_paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_FLAGS = "state.hidden.once."


def find_hidden_preconditions(spec: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield a finding for each action of a valid document whose preconditions read what no player sees.

    The value of a deal is an error, any other one a warning. The flags of `once` follow from what happened,
    so they may be read. So may a value that the action itself changes by a number, which has the same use,
    and a deal, where a clue must be known whose text depends on it.
    """
    entities = spec.get("entities", [])
    players = {entity["id"] for entity in entities if entity.get("playable")} or {
        entity["id"] for entity in entities
    }
    visibility = engine.Visibility(spec)
    veiled = {engine.format_path(path) for path in list_veiled_paths(spec)}
    deals = {deal["id"]: deal["path"] for deal in spec.get("deal", [])}
    clues = spec.get("clues", {})
    for index, action in enumerate(spec["actions"]):
        told = {
            clues[name]["text"]["deal"]
            for name in _list_needed(action["preconditions"])
            if isinstance(clues[name]["text"], dict)
        }
        own = {
            effect["path"]
            for effect in action["effects"]
            if effect["op"] in {"set", "inc", "dec"} and isinstance(effect["value"], int | float)
        }
        for path in dict.fromkeys(list_read_paths(action["preconditions"])):
            # Of a path with a parameter, the part before it decides.
            fixed = path.partition("[params.")[0]
            if not fixed or fixed in veiled or fixed.startswith(_FLAGS) or fixed in own:
                continue
            audience = visibility.find_audience(engine.parse_path(fixed))
            if audience is None or audience & players:
                continue
            dealt = {name for name, place in deals.items() if are_related([place], [fixed])}
            if dealt and dealt <= told:
                continue
            message = (
                f"'{path[:80]}' decides if the action is legal, and no player sees it: the list of legal"
                " actions reveals it"
            )
            place = f"/actions/{index}/preconditions"
            if dealt:
                yield Finding("DEAL_IN_PRECONDITION", place, message)
            else:
                yield Finding("HIDDEN_PRECONDITION", place, message, Severity.WARNING)


def _list_needed(condition: Any) -> Iterator[str]:
    """Yield the clues without which a condition cannot hold."""
    match condition:
        case {"and": [*parts]}:
            for part in parts:
                yield from _list_needed(part)
        case {"known": str(name) | [str(name)]}:
            yield name
