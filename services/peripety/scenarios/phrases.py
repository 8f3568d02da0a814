"""Rules in words: conditions in infix notation, and effects as changes of quantities."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["condition", "effect", "effects", "expression", "literal", "quantity"]

_OR, _AND, _NOT, _COMPARED, _SUM, _PRODUCT, _WHOLE = range(7)
"""The precedence of a phrase; an operand with a lower one than its context is put in parentheses."""

_INFIX = {
    "or": ("or", _OR),
    "and": ("and", _AND),
    "==": ("=", _COMPARED),
    "===": ("=", _COMPARED),
    "!=": ("≠", _COMPARED),
    "!==": ("≠", _COMPARED),
    "<": ("<", _COMPARED),
    "<=": ("≤", _COMPARED),
    ">": (">", _COMPARED),
    ">=": ("≥", _COMPARED),
    "in": ("in", _COMPARED),
    "+": ("+", _SUM),
    "-": ("-", _SUM),
    "*": ("*", _PRODUCT),
    "/": ("/", _PRODUCT),
    "%": ("mod", _PRODUCT),
}
_ROOTS = ("state.", "params.", "derives.")
_QUOTED = re.compile(r'\[("[^"\\]*")\]')


def condition(logic: Any) -> str:
    """Format a condition; empty if it always holds."""
    return "" if logic == {} else expression(logic)


def expression(logic: Any) -> str:
    """Format a JSONLogic expression, such as `a ≥ 3 and (b < c or turn > 8)`."""
    return _phrase(logic)[0]


def quantity(path: str) -> str:
    """Format a path or a variable, without brackets and without the implied root."""
    told = _QUOTED.sub(lambda key: f".{json.loads(key[1])}", path)
    return next((told.removeprefix(root) for root in _ROOTS if told.startswith(root)), told)


def literal(value: Any) -> str:
    """Format a JSON value; numbers have no redundant digits."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.15g}"
    return json.dumps(value, ensure_ascii=False)


def effects(rule: Mapping[str, Any]) -> list[str]:
    """Format the effects of a rule, one by one."""
    derives = rule.get("derives") or {}
    return [effect(one, derives) for one in rule["effects"]]


def effect(done: Mapping[str, Any], derives: Mapping[str, Any]) -> str:
    """Format an effect, such as `a -3`; a derived value is written out.

    Args:
        done: the effect; in a draft it may be any value, and an invalid effect is formatted as JSON.
        derives: the derived values of its rule, by name.
    """
    try:
        return _EFFECTS[done["op"]](done, derives)
    except (KeyError, TypeError, AttributeError):
        return literal(done)


def _phrase(logic: Any) -> tuple[str, int]:
    """Return the words and their precedence."""
    if not isinstance(logic, dict) or len(logic) != 1:
        return literal(logic), _WHOLE
    ((operator, given),) = logic.items()
    arguments = given if isinstance(given, list) else [given]
    if operator == "var":
        name = arguments[0] if arguments else ""
        return quantity(name) if isinstance(name, str) else literal(name), _WHOLE
    if operator in _INFIX and len(arguments) > 1:
        word, strength = _INFIX[operator]
        # Only `and` and `or` are associative here: a - (b - c) differs from a - b - c.
        inside = strength if strength in {_OR, _AND} else strength + 1
        return f" {word} ".join(_within(argument, inside) for argument in arguments), strength
    return _prefixed(operator, arguments)


def _prefixed(operator: str, arguments: list[Any]) -> tuple[str, int]:
    """Format an operator in prefix notation."""
    match operator, arguments:
        case "!", [denied]:
            return f"not {_within(denied, _COMPARED)}", _NOT
        case "!!", [meant]:
            return _phrase(meant)
        case "-", [negated]:
            return f"-{_within(negated, _WHOLE)}", _PRODUCT
        case "if" | "?:", [told, then, otherwise]:
            return f"{expression(then)} if {expression(told)} else {expression(otherwise)}", _OR
        case _:
            return f"{operator}({', '.join(map(expression, arguments))})", _WHOLE


def _within(logic: Any, strength: int) -> str:
    words, held = _phrase(logic)
    return words if held >= strength else f"({words})"


def _amount(value: Any, derives: Mapping[str, Any]) -> str:
    """Format the value of an effect; the name of a derived value is replaced by its expression."""
    if isinstance(value, str) and value in derives:
        return _within(derives[value], _WHOLE)
    return literal(value)


def _moved(done: Mapping[str, Any], derives: Mapping[str, Any]) -> str:
    sign, value = (1 if done["op"] == "inc" else -1), done["value"]
    if isinstance(value, str):
        return f"{quantity(done['path'])} {'+' if sign > 0 else '-'} {_amount(value, derives)}"
    return f"{quantity(done['path'])} {sign * value:+.15g}"


def _patched(done: Mapping[str, Any], derives: Mapping[str, Any]) -> str:
    path, value = quantity(done["path"]), done["value"]
    if isinstance(value, str):
        return f"{path} takes over {_amount(value, derives)}"
    return ", ".join(f"{path}.{key} = {literal(item)}" for key, item in value.items())


def _scheduled(done: Mapping[str, Any], derives: Mapping[str, Any]) -> str:
    later = ", ".join(effect(one, derives) for one in done["effects"])
    after = done.get("after")
    if after is not None:
        return f"{after if isinstance(after, str) else f'{after} turns'} later: {later}"
    at = done["at"]
    return f"{at if isinstance(at, str) else f'in turn {at}'}: {later}"


_EFFECTS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], str]] = {
    "set": lambda done, derives: f"{quantity(done['path'])} = {_amount(done['value'], derives)}",
    "inc": _moved,
    "dec": _moved,
    "mul": lambda done, derives: f"{quantity(done['path'])} times {_amount(done['value'], derives)}",
    "patch": _patched,
    "push": lambda done, derives: f"{quantity(done['path'])} gains {_amount(done['value'], derives)}",
    "pop": lambda done, _: f"{quantity(done['path'])} loses its last",
    "addlog": lambda done, _: f"says {literal(done['message'])}",
    "schedule": _scheduled,
}
