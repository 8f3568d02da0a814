"""Checks of conditions on values that no player sees.

Players see which actions are legal, so a precondition on such a value reveals it. A player who follows a
solution cannot read one, so no condition of a step may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.engine.checks.document_checks import is_state_path
from peripety.engine.lowering import list_veiled_paths
from peripety.engine.paths import are_related, format_path, list_read_paths, parse_path
from peripety.engine.visibility import Visibility
from peripety.errors import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_FLAGS = "state.hidden.once."


def check_secrecy(spec: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield a finding for each precondition and each step of a solution that reads what no player sees.

    The flags of `once` follow from what happened, so both may read them. A precondition may also read a value
    that its action changes by a number, which has the same use, and a deal, where a clue must be known whose
    text depends on it.
    """
    hidden = _HiddenPaths(spec)
    deals = [deal for deal in spec.get("deal", ()) if is_state_path(deal["path"])]
    clues = spec.get("clues", {})
    for index, action in enumerate(spec["actions"]):
        condition, place = action["preconditions"], f"/actions/{index}/preconditions"
        own = {
            effect["path"]
            for effect in action["effects"]
            if effect["op"] in {"set", "inc", "dec"} and isinstance(effect["value"], int | float)
        }
        told = {_find_deal(clues.get(name)) for name in _list_needed(condition)}
        for path, fixed in hidden.list_read(condition):
            dealt = {deal["id"] for deal in deals if are_related([deal["path"]], [fixed])}
            if fixed in own or (dealt and dealt <= told):
                continue
            message = (
                f"'{path[:80]}' decides if the action is legal, and no player sees it: the list of legal"
                " actions reveals it"
            )
            yield Finding(
                "DEAL_IN_PRECONDITION" if dealt else "HIDDEN_PRECONDITION", place, message, Severity.WARNING
            )
    for index, solution in enumerate(spec.get("solutions", ())):
        for number, step in enumerate(solution["steps"]):
            for path, _ in hidden.list_read(step.get("when", {})):
                message = (
                    f"no player sees '{path[:80]}', so a player cannot decide by it; use what is visible,"
                    ' such as {"known": id} of a clue'
                )
                yield Finding("HIDDEN_IN_STEP", f"/solutions/{index}/steps/{number}/when", message)


class _HiddenPaths:
    """The paths of a scenario that no player sees.

    The players are the playable entities; all of them, if none is.
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        entities = spec.get("entities", ())
        self._players = {entity["id"] for entity in entities if entity.get("playable")} or {
            entity["id"] for entity in entities
        }
        labels = [label for label in spec.get("visibility", ()) if is_state_path(label["path"])]
        self._visibility = Visibility({**spec, "visibility": labels})
        self._veiled = {format_path(path) for path in list_veiled_paths(spec)}

    def list_read(self, condition: Any) -> Iterator[tuple[str, str]]:
        """Yield the hidden paths that a condition reads, each with its part before a parameter."""
        for path in dict.fromkeys(list_read_paths(condition)):
            fixed = path.partition("[params.")[0]
            if is_state_path(fixed) and self._is_hidden(fixed):
                yield path, fixed

    def _is_hidden(self, path: str) -> bool:
        if path in self._veiled or path.startswith(_FLAGS):
            return False
        audience = self._visibility.find_audience(parse_path(path))
        return audience is not None and not audience & self._players


def _find_deal(clue: Any) -> str | None:
    """Return the id of the deal that the text of a clue depends on."""
    text = clue["text"] if clue is not None else None
    return text["deal"] if isinstance(text, dict) else None


def _list_needed(condition: Any) -> Iterator[str]:
    """Yield the clues without which a condition cannot hold."""
    match condition:
        case {"and": [*parts]}:
            for part in parts:
                yield from _list_needed(part)
        case {"known": str(name) | [str(name)]}:
            yield name
