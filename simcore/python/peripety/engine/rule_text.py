"""Rules in words: conditions in infix notation, effects as changes, and a semantic diff rule by rule."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.engine.spec_sections import SECTIONS, split_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from peripety.engine.spec_sections import PartName, SpecPart


class RuleEditKind(Enum):
    """Kind of a difference."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class RuleEdit:
    """Difference between two documents.

    Attributes:
        kind: the kind of the difference.
        path: JSON Pointer of the part, in the document that has it (the new one for a change).
        before: the part before, as JSON; None for an added part.
        after: the part after, as JSON; None for a removed part.
        summary: one sentence about the difference.
    """

    kind: RuleEditKind
    path: str
    before: bytes | None
    after: bytes | None
    summary: str


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
_SOLUTIONS = ("solutions",)
_ROOTS = ("state.", "params.", "derives.")
_QUOTED = re.compile(r'\[("[^"\\]*")\]')


def describe_condition(logic: Any) -> str:
    """Format a condition; empty if it always holds."""
    return "" if logic == {} else describe_expression(logic)


def describe_expression(logic: Any) -> str:
    """Format a JSONLogic expression, such as `a ≥ 3 and (b < c or turn > 8)`."""
    return _phrase_with_precedence(logic)[0]


def format_path(path: str) -> str:
    """Format a path or a variable, without brackets and without the implied root."""
    told = _QUOTED.sub(lambda key: f".{json.loads(key[1])}", path)
    return next((told.removeprefix(root) for root in _ROOTS if told.startswith(root)), told)


def format_literal(value: Any) -> str:
    """Format a JSON value; numbers have no redundant digits."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.15g}"
    return json.dumps(value, ensure_ascii=False)


def describe_effects(rule: Mapping[str, Any]) -> list[str]:
    """Format the effects of a rule, one by one."""
    derives = rule.get("derives") or {}
    return [describe_effect(one, derives) for one in rule["effects"]]


def describe_effect(done: Mapping[str, Any], derives: Mapping[str, Any]) -> str:
    """Format an effect, such as `a -3`; a derived value is written out.

    Args:
        done: the effect; in a draft it may be any value, and an invalid effect is formatted as JSON.
        derives: the derived values of its rule, by name.
    """
    try:
        return _EFFECTS[done["op"]](done, derives)
    except (KeyError, TypeError, AttributeError):
        return format_literal(done)


def _phrase_with_precedence(logic: Any) -> tuple[str, int]:
    """Return the words and their precedence."""
    if not isinstance(logic, dict) or len(logic) != 1:
        return format_literal(logic), _WHOLE
    ((operator, given),) = logic.items()
    arguments = given if isinstance(given, list) else [given]
    if operator == "var":
        name = arguments[0] if arguments else ""
        return format_path(name) if isinstance(name, str) else format_literal(name), _WHOLE
    if operator in _INFIX and len(arguments) > 1:
        word, strength = _INFIX[operator]
        # Only `and` and `or` are associative here: a - (b - c) differs from a - b - c.
        inside = strength if strength in {_OR, _AND} else strength + 1
        return f" {word} ".join(_parenthesize(argument, inside) for argument in arguments), strength
    return _format_prefix(operator, arguments)


def _format_prefix(operator: str, arguments: list[Any]) -> tuple[str, int]:
    """Format an operator in prefix notation."""
    match operator, arguments:
        case "!", [denied]:
            return f"not {_parenthesize(denied, _COMPARED)}", _NOT
        case "!!", [meant]:
            return _phrase_with_precedence(meant)
        case "known" | "broken", [str(name)]:
            return f"{name} is {operator}", _COMPARED
        case "-", [negated]:
            return f"-{_parenthesize(negated, _WHOLE)}", _PRODUCT
        case "if" | "?:", [tested, then, otherwise]:
            condition, other = describe_expression(tested), describe_expression(otherwise)
            return f"{describe_expression(then)} if {condition} else {other}", _OR
        case _:
            return f"{operator}({', '.join(map(describe_expression, arguments))})", _WHOLE


def _parenthesize(logic: Any, strength: int) -> str:
    words, held = _phrase_with_precedence(logic)
    return words if held >= strength else f"({words})"


def _format_amount(value: Any, derives: Mapping[str, Any]) -> str:
    """Format the value of an effect; the name of a derived value is replaced by its expression."""
    if isinstance(value, str) and value in derives:
        return _parenthesize(derives[value], _WHOLE)
    return format_literal(value)


def _describe_increment(done: Mapping[str, Any], derives: Mapping[str, Any]) -> str:
    sign, value = (1 if done["op"] == "inc" else -1), done["value"]
    if isinstance(value, str):
        return f"{format_path(done['path'])} {'+' if sign > 0 else '-'} {_format_amount(value, derives)}"
    return f"{format_path(done['path'])} {sign * value:+.15g}"


def _describe_patch(done: Mapping[str, Any], derives: Mapping[str, Any]) -> str:
    path, value = format_path(done["path"]), done["value"]
    if isinstance(value, str):
        return f"{path} takes over {_format_amount(value, derives)}"
    return ", ".join(f"{path}.{key} = {format_literal(item)}" for key, item in value.items())


def _describe_schedule(done: Mapping[str, Any], derives: Mapping[str, Any]) -> str:
    later = ", ".join(describe_effect(one, derives) for one in done["effects"])
    after = done.get("after")
    if after is not None:
        return f"{after if isinstance(after, str) else f'{after} turns'} later: {later}"
    at = done["at"]
    return f"{at if isinstance(at, str) else f'in turn {at}'}: {later}"


_EFFECTS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], str]] = {
    "set": lambda done, derives: f"{format_path(done['path'])} = {_format_amount(done['value'], derives)}",
    "inc": _describe_increment,
    "dec": _describe_increment,
    "mul": lambda done, derives: (
        f"{format_path(done['path'])} times {_format_amount(done['value'], derives)}"
    ),
    "patch": _describe_patch,
    "push": lambda done, derives: (
        f"{format_path(done['path'])} gains {_format_amount(done['value'], derives)}"
    ),
    "pop": lambda done, _: f"{format_path(done['path'])} loses its last",
    "addlog": lambda done, _: f"says {format_literal(done['message'])}",
    "schedule": _describe_schedule,
    "reveal": lambda done, _: _describe_told("reveals the clue {}", done["clue"], done),
    "say": lambda done, _: _describe_told("the statement {} is made", done["statement"], done),
    "promise": lambda done, _: f"the promise {format_literal(done['promise'])} is made",
    "keep": lambda done, _: f"the promise {format_literal(done['promise'])} is kept",
    "break": lambda done, _: f"the promise {format_literal(done['promise'])} is broken",
    "move": lambda done, _: f"{_describe_subject(done['entity'])} moves to {_describe_subject(done['to'])}",
}


def _describe_told(words: str, subject: str | Mapping[str, Any], done: Mapping[str, Any]) -> str:
    """Format an effect on a clue or statement, with its condition."""
    condition = describe_condition(done.get("when", {}))
    told = words.format(format_literal(_describe_subject(subject)))
    return f"{told} if {condition}" if condition else told


def _describe_subject(given: str | Mapping[str, Any]) -> str:
    """Format an id, or the name of the parameter that gives it."""
    return given if isinstance(given, str) else str(given["param"])


_MAX_TEXT = 80
_KINDS = {
    "entities": "entity",
    "actions": "action",
    "random_events": "event",
    "loss_conditions": "loss",
    "win_conditions": "win",
    "deal": "deal",
    "clues": "clue",
    "statements": "statement",
    "promises": "promise",
    "places": "place",
    "epilogues": "epilogue",
}
_LABELLED = {
    "visibility": "who sees",
    "narrator_scope": "what the narrator may do to",
    "bounds": "bounds of",
    "labels": "label of",
}
_CONDITIONS = frozenset({"preconditions", "when"})
_ORDER = ("name", "kind", "description", "weight", "when", "preconditions", "duration", "params", "derives")
"""The keys of a rule that are described first; other keys follow, effects are last."""
_SPANS = {("duration",), ("turn",)}
_IDENTITY = frozenset(SECTIONS.values())

_Aspect: TypeAlias = tuple[tuple[str, ...], tuple[str, str]]
"""An aspect of a part: the key that matches it before and after a change, with its label and text."""


def describe_part(name: PartName) -> str:
    """Describe a part by its name, such as `event 'a'` or `initial a`."""
    section, known_by = name[0], "".join(name[1:2])
    if len(name) == 1:
        return section
    if section in _KINDS:
        return f"{_KINDS[section]} '{known_by}'"
    if section in _LABELLED:
        return f"{_LABELLED[section]} {format_path(known_by)}"
    return f"initial {known_by}" if section == "state" else known_by.removesuffix("_per_turn")


def describe_content(name: PartName, value: Any) -> str:
    """Describe the content of a part."""
    return "; ".join(filter(None, (_label_text(*told) for told in _find_aspects(name, value).values())))


def describe_change(name: PartName, before: Any, after: Any) -> str:
    """Describe the change of a part, such as `weight 0.1 → 0.15; a -3 → a -5`."""
    old, new = _find_aspects(name, before), _find_aspects(name, after)
    gone = [f"{_label_text(*told)} removed" for key, told in old.items() if key not in new]
    come = [f"{_label_text(*told)} added" for key, told in new.items() if key not in old]
    moved = [_describe_move(old[key], told) for key, told in new.items() if key in old and old[key] != told]
    return "; ".join([*moved, *come, *gone]) or "put in another order"


def _describe_move(before: tuple[str, str], after: tuple[str, str]) -> str:
    label, was = before
    one, other = _clip(was), _clip(after[1])
    if one == other:
        return f"{label or one} reworded"
    return f"{label} {one} → {other}".strip()


def _label_text(label: str, text: str) -> str:
    return f"{label} {_clip(text)}".strip()


def _find_aspects(name: PartName, value: Any) -> dict[tuple[str, ...], tuple[str, str]]:
    """Return the aspects of a part; an invalid rule of a draft is formatted as JSON."""
    is_entry = name[0] in SECTIONS and isinstance(value, dict)
    return dict(_aspects_of_entry(value) if is_entry else _aspects_of_value(value, ()))


def _aspects_of_value(value: Any, place: tuple[str, ...]) -> Iterator[_Aspect]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _aspects_of_value(inner, (*place, key))
    else:
        is_span = place[-1:] in _SPANS and isinstance(value, str)
        yield place, (".".join(map(format_path, place)), value if is_span else format_literal(value))


def _aspects_of_entry(value: Mapping[str, Any]) -> Iterator[_Aspect]:
    for key in sorted(value, key=_key_rank):
        said = value[key]
        if key in _IDENTITY:
            continue
        if key in _CONDITIONS:
            yield (key,), ("when", describe_condition(said) or "always")
        elif key == "effects" and isinstance(said, list):
            yield from _aspects_of_effects(said, value.get("derives"))
        elif key == "params" and isinstance(said, dict):
            yield from (((key, name), (name, _describe_domain(param))) for name, param in said.items())
        elif key == "derives" and isinstance(said, dict):
            yield from (
                ((key, name), (f"{name} =", describe_expression(logic))) for name, logic in said.items()
            )
        else:
            yield from _aspects_of_value(said, (key,))


def _key_rank(key: str) -> tuple[bool, int]:
    return key == "effects", _ORDER.index(key) if key in _ORDER else len(_ORDER)


def _aspects_of_effects(done: list[Any], derives: Any) -> Iterator[_Aspect]:
    """Yield the aspects of effects; two effects match if they have the same operation and quantity."""
    seen: Counter[str] = Counter()
    for one in done:
        place = f"{_effect_family(one)} {one.get('path', one.get('id'))}" if isinstance(one, dict) else ""
        seen[place] += 1
        yield ("effects", place, str(seen[place])), ("", describe_effect(one, derives or {}))


def _effect_family(done: Mapping[str, Any]) -> Any:
    match done:
        case {"op": "inc" | "dec"}:
            return "move"
        case _:
            return done.get("op")


def _describe_domain(param: Any) -> str:
    """Format the allowed values of a parameter."""
    match param:
        case {"enum": [*options]}:
            return f"one of {', '.join(map(format_literal, options))}"
        case {"type": str(kind), "minimum": least, "maximum": most}:
            return f"{kind} from {format_literal(least)} to {format_literal(most)}"
        case {"maxLength": int(longest)}:
            return f"text of up to {longest} characters"
        case {"type": "boolean"}:
            return "yes or no"
        case _:
            return format_literal(param)


def _clip(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"


def diff_specs(before: Any, after: Any) -> tuple[RuleEdit, ...]:
    """Return the differences between two documents, valid or not: in the order of the new one, removals last.

    Parts are matched by name, not by position. The content of solutions is left out: the reader may be about
    to play.
    """
    old = {part.name: part for part in split_parts(before)}
    new = {part.name: part for part in split_parts(after)}
    edits = []
    for name, part in new.items():
        if name not in old:
            content = "" if name == _SOLUTIONS else f": {describe_content(name, part.value)}"
            summary = f"{describe_part(name)} added{content}"
            edits.append(RuleEdit(RuleEditKind.ADDED, part.path, None, _part_to_json(part), summary))
        elif old[name].value != part.value:
            edits.append(_diff_part(part, old[name].value))
    for name, part in old.items():
        if name not in new:
            summary = f"{describe_part(name)} removed"
            edits.append(RuleEdit(RuleEditKind.REMOVED, part.path, _part_to_json(part), None, summary))
    return tuple(edits)


def _diff_part(part: SpecPart, before: Any) -> RuleEdit:
    if part.name == _SOLUTIONS:
        hidden = _part_to_json(part)
        return RuleEdit(RuleEditKind.CHANGED, part.path, hidden, hidden, "solutions changed")
    told = describe_change(part.name, before, part.value)
    # A number follows its label without a colon.
    colon = ":" if isinstance(part.value, dict) else ""
    summary = f"{describe_part(part.name)}{colon} {told}"
    return RuleEdit(RuleEditKind.CHANGED, part.path, _to_json(before), _to_json(part.value), summary)


def _part_to_json(part: SpecPart) -> bytes:
    """Return a part as JSON; null for solutions, whose content is left out."""
    return _to_json(None if part.name == _SOLUTIONS else part.value)


def _to_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
