"""Correction of slips in the draft of a model, where only one meaning is possible.

Models write a neighbouring key (`text` for `message`), leave out an empty condition, or write 1 for true. A
repair for each would cost an answer. The corrected draft is reported as an edit, and only then validated and
hashed; documents from elsewhere are never corrected.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.errors import PeripetyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_OPERATIONS = MappingProxyType(
    {
        "add": "inc",
        "increment": "inc",
        "increase": "inc",
        "sub": "dec",
        "subtract": "dec",
        "decrement": "dec",
        "decrease": "dec",
        "multiply": "mul",
        "append": "push",
        "log": "addlog",
    }
)
_AMOUNT = ("value", ("amount", "by", "delta"))
_NEIGHBOURS: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = MappingProxyType(
    {
        "set": (("value", ("to",)),),
        "inc": (_AMOUNT,),
        "dec": (_AMOUNT,),
        "mul": (("value", ("by", "factor")),),
        "patch": (("value", ("values",)),),
        "push": (("value", ("item",)),),
        "addlog": (("message", ("text", "value", "line")),),
        "schedule": (("after", ("in", "turns", "delay")),),
        "reveal": (("clue", ("id", "value")),),
        "say": (("statement", ("id", "value")),),
        "promise": (("promise", ("id", "value")),),
        "keep": (("promise", ("id", "value")),),
        "break": (("promise", ("id", "value")),),
        "move": (("entity", ("id", "who")), ("to", ("place", "value"))),
    }
)
"""The keys of each operation, with other keys that models write in their place."""
_TYPES = MappingProxyType(
    {
        "int": "integer",
        "float": "number",
        "bool": "boolean",
        "str": "string",
        "text": "string",
        "enum": "string",
    }
)
_EQUALITIES = frozenset({"==", "!=", "===", "!=="})
_TRUTHS = MappingProxyType({0: False, 1: True, "false": False, "true": True})
_TEXT_KEYS = MappingProxyType({"clues": "text", "places": "name", "labels": "name"})


def correct_slips(document: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return a draft without slips.

    Args:
        document: the draft, valid or not.
        before: the document before the answer; parts that it has as well remain as they are.
    """
    state = document.get("state")
    slips = _SlipCorrection(state if isinstance(state, dict) else {})
    corrected = {
        key: value if before.get(key) == value else slips.correct_member(key, value, before.get(key))
        for key, value in document.items()
    }
    if isinstance(corrected.get("state"), dict) and corrected.get("deal") != before.get("deal"):
        corrected["state"] = _with_dealt_values(corrected["state"], corrected.get("deal"))
    return corrected


def _with_dealt_values(state: dict[str, Any], deals: Any) -> dict[str, Any]:
    """Return the state with a value at the path of each deal."""
    for deal in deals if isinstance(deals, list) else ():
        match deal:
            case {"path": str(path), "values": [first, *_]} if _lookup(state, path) is None:
                state = _with_value(state, _parse(path)[1:], first)
    return state


def _with_value(holder: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """Return an object with a value at a path, unless something else than objects is on the way."""
    if not path or not isinstance(holder, dict):
        return holder
    key, *rest = path
    inner = holder.get(key, {} if rest else None)
    return {**holder, key: _with_value(inner, tuple(rest), value) if rest else value}


def _parse(path: str) -> tuple[str | int, ...]:
    try:
        return engine.parse_path(path)
    except PeripetyError:
        return ()


def _lookup(state: Mapping[str, Any], path: str) -> Any:
    """Return the initial value at a path; None if the path has no value."""
    value: Any = state
    for segment in _parse(path)[1:]:
        value = value.get(segment) if isinstance(value, dict) else None
    return value


class _SlipCorrection:
    """Corrections that depend on the initial state.

    Args:
        state: the initial state.
    """

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._state = state

    def correct_member(self, key: str, value: Any, before: Any) -> Any:
        """Return a member of a document without slips."""
        entries = {"actions": self._action, "random_events": self._event, "entities": _entity}
        entries |= {"loss_conditions": self._ending, "win_conditions": self._ending}
        named: dict[str, Callable[[Any], Any]] = {"statements": _statement, "bounds": _bounds}
        named |= {section: _text_under(text) for section, text in _TEXT_KEYS.items()}
        if key in entries and isinstance(value, list):
            present = before if isinstance(before, list) else []
            return [entries[key](one) if _is_rule(one, key) and one not in present else one for one in value]
        if key in named and isinstance(value, dict):
            return {name: named[key](one) for name, one in value.items()}
        return value

    def _action(self, action: dict[str, Any]) -> dict[str, Any]:
        changed = {"params": {}, **_rename(action, "preconditions", ("when",))}
        if isinstance(changed["params"], dict):
            changed["params"] = {name: _param(param) for name, param in changed["params"].items()}
        return _with_derived_params(self._rule({"preconditions": {}, **changed}, "preconditions"))

    def _event(self, event: dict[str, Any]) -> dict[str, Any]:
        return self._rule({"when": {}, **_rename(event, "when", ("preconditions",))}, "when")

    def _ending(self, ending: dict[str, Any]) -> dict[str, Any]:
        changed = _rename(ending, "when", ("preconditions",))
        return {**changed, "when": self._logic(changed["when"])} if "when" in changed else changed

    def _rule(self, rule: dict[str, Any], condition: str) -> dict[str, Any]:
        changed = {**rule, condition: self._logic(rule[condition])}
        if "once" in changed:
            changed["once"] = _to_truth(changed["once"])
        effects = changed.get("effects")
        if effects is not None:
            changed["effects"] = self._effects(effects)
        return changed

    def _effects(self, effects: Any) -> Any:
        listed = [effects] if isinstance(effects, dict) else effects
        if not isinstance(listed, list):
            return effects
        return [self._effect(effect) if isinstance(effect, dict) else effect for effect in listed]

    def _effect(self, effect: dict[str, Any]) -> dict[str, Any]:
        op = effect.get("op")
        op = _OPERATIONS.get(op, op) if isinstance(op, str) else op
        changed = {**effect, "op": op} if "op" in effect else effect
        for key, others in _NEIGHBOURS.get(op, ()) if isinstance(op, str) else ():
            changed = _rename(changed, key, others)
        if op == "set" and "value" in changed and isinstance(changed.get("path"), str):
            changed = {**changed, "value": self._like(changed["value"], changed["path"])}
        if op == "schedule":
            later = {"effects": self._effects(changed["effects"])} if "effects" in changed else {}
            once = {"once": _to_truth(changed["once"])} if "once" in changed else {}
            changed = {**changed, **later, **once}
        return changed

    def _logic(self, logic: Any) -> Any:
        """Return an expression in which a value is compared with values of its own kind."""
        if isinstance(logic, list):
            return [self._logic(item) for item in logic]
        if not isinstance(logic, dict):
            return logic
        return {operator: self._operands(operator, operand) for operator, operand in logic.items()}

    def _operands(self, operator: str, operand: Any) -> Any:
        match operand:
            case [{"var": str(name)} as read, value] if operator in _EQUALITIES:
                return [read, self._like(value, name)]
            case [value, {"var": str(name)} as read] if operator in _EQUALITIES:
                return [self._like(value, name), read]
            case _:
                return self._logic(operand)

    def _like(self, value: Any, path: str) -> Any:
        """Return 0 or 1 as a boolean if the initial value is one, and a boolean as 0 or 1 if it is 0 or 1."""
        initial = _lookup(self._state, path) if path.startswith("state.") else None
        if isinstance(initial, bool) and type(value) is int:
            return _TRUTHS.get(value, value)
        if type(initial) is int and initial in _TRUTHS and isinstance(value, bool):
            return int(value)
        return value


def _is_rule(entry: Any, section: str) -> bool:
    """Return True if an entry is complete enough for its slips to have one meaning."""
    return isinstance(entry, dict) and ("effects" in entry or section not in {"actions", "random_events"})


def _rename(holder: dict[str, Any], key: str, others: tuple[str, ...]) -> dict[str, Any]:
    """Return an object in which one of some other keys is the key that is missing."""
    found = [other for other in others if other in holder]
    if key in holder or len(found) != 1:
        return holder
    return {key if name == found[0] else name: value for name, value in holder.items()}


def _to_truth(value: Any) -> Any:
    return _TRUTHS.get(value, value) if isinstance(value, int | str) else value


def _param(param: Any) -> Any:
    match param:
        case [str(), *others] if all(isinstance(option, str) for option in others):
            return {"type": "string", "enum": param}
        case {"type": str(name)} if name in _TYPES:
            return {**param, "type": _TYPES[name]}
        case {"enum": [*options]} if "type" not in param and all(isinstance(one, str) for one in options):
            return {"type": "string", **param}
        case _:
            return param


def _entity(entity: dict[str, Any]) -> dict[str, Any]:
    return {**entity, "playable": _to_truth(entity["playable"])} if "playable" in entity else entity


def _statement(statement: Any) -> Any:
    if not isinstance(statement, dict) or "true" not in statement:
        return statement
    return {**statement, "true": _to_truth(statement["true"])}


def _bounds(bounds: Any) -> Any:
    match bounds:
        case [int() | float() as least, int() | float() as most]:
            return {"min": least, "max": most}
        case _:
            return bounds


def _text_under(key: str) -> Callable[[Any], Any]:
    """Return a function that makes a bare text a member of an object."""
    return lambda value: {key: value} if isinstance(value, str) else value


def _with_derived_params(action: dict[str, Any]) -> dict[str, Any]:
    """Return an action in which a parameter that an effect names as its value is a derived value."""
    match action:
        case {"params": dict(params), "effects": list(effects)}:
            derives = action.get("derives") or {}
            if not isinstance(derives, dict):
                return action
            named = [name for name in _iter_values(effects) if name in params and name not in derives]
            added = {name: {"var": f"params.{name}"} for name in named}
            return {**action, "derives": {**derives, **added}} if added else action
        case _:
            return action


def _iter_values(effects: list[Any]) -> Iterator[str]:
    """Yield the values of effects that are texts, including those of scheduled effects."""
    for effect in effects:
        match effect:
            case {"value": str(value)}:
                yield value
            case {"effects": list(later)}:
                yield from _iter_values(later)
