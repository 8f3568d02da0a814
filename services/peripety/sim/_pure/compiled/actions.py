"""Code generation for a persona's turn: legal actions, their parameters, and the chosen action."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from peripety.sim._pure import params as legal
from peripety.sim._pure.compiled.code import Code, NotLoweredError
from peripety.sim._pure.compiled.slots import items_kind
from peripety.sim._pure.compiled.source import dispatch, indented
from peripety.sim._pure.turn import PARAM_TRIES

if TYPE_CHECKING:
    from peripety.sim._pure.compiled.draft import Draft
    from peripety.sim._pure.compiled.rules import RuleWriter

__all__ = ["ActionWriter"]

# Draws of the persona that each row contains; further ones are drawn singly.
_MOST_DRAWS_AHEAD = 8
_LARGEST_DRAW = (1 << 64) - 1


class ActionWriter:
    """Generates the statements of actions for a persona that chooses at random.

    Attributes:
        width: number of the persona's draws that each row should contain.
    """

    def __init__(self, actions: list[Any], writer: RuleWriter, draft: Draft) -> None:
        self._actions = actions
        self._writer = writer
        self._params = [_Params(action["params"], f"a{n}", draft) for n, action in enumerate(actions)]
        drawn = sum(params.count for params in self._params)
        self.width = min(1 + drawn, _MOST_DRAWS_AHEAD)
        self._index = "index" if drawn else "0"

    def lines(self) -> list[str]:
        """Return the statements of the persona's turn."""
        lines = ["legal = []", *(["index = 0"] if self._index == "index" else [])]
        bodies = []
        for number in range(len(self._actions)):
            offered, body = self._action(number)
            lines += offered
            bodies.append(body)
        return [
            *lines,
            "if legal:",
            *indented(
                [
                    f"action = legal[({self._draw(self._index)} >> 32) * len(legal) >> 32]",
                    *dispatch("action", bodies),
                ]
            ),
        ]

    def _action(self, number: int) -> tuple[list[str], list[str]]:
        """Return the statements that test whether an action is legal, and those that perform it."""
        action, params = self._actions[number], self._params[number]
        body = self._writer.rule(action, params.codes)
        offer = f"legal.append({number})"
        if not params.count:
            condition = self._writer.condition(action["preconditions"])
            return _guarded(condition, [offer]), body
        condition = self._writer.condition(action["preconditions"], params.codes, PARAM_TRIES)
        if params.read_by([condition.text]):
            # Parameters are drawn for each attempt; the last draw is the one that the action uses.
            drawn = self._sampled(params, [condition.text, *body], self._index)
            attempt = [*drawn, f"index += {params.count}", *_guarded(condition, [offer, "break"])]
            return [f"for _ in range({PARAM_TRIES}):", *indented(attempt)], body
        # Draws have no state, so parameters are drawn only for the chosen action.
        place = f"index{number}"
        offered = _guarded(condition, [offer, f"{place} = index", f"index += {params.count}"])
        if condition.literal is not True:
            offered += ["else:", *indented([f"index += {PARAM_TRIES * params.count}"])]
        return offered, [*self._sampled(params, body, place), *body]

    def _sampled(self, params: _Params, readers: list[str], place: str) -> list[str]:
        return [
            f"{params.codes[name].text} = {params.sample(name, self._draw(place, position))}"
            for position, name in enumerate(sorted(params.codes))
            if name in params.read_by(readers)
        ]

    def _draw(self, index: str, more: int = 0) -> str:
        """Return the source of the persona's draw at an index."""
        if index == "0":
            return "draws[1]"
        index = f"{index} + {more}" if more else index
        return f"(draws[1 + {index}] if {index} < {self.width} else draw(seed, POLICY_KEY, turn, {index}))"


class _Params:
    """Parameters of an action: their variables and the source of their draws.

    Raises:
        NotLoweredError: a drawn value may not be legal.
    """

    def __init__(self, declared: dict[str, Any], prefix: str, draft: Draft) -> None:
        self.count = len(declared)
        self._declared = declared
        self._options: dict[str, str] = {}
        self.codes: dict[str, Code] = {}
        for position, name in enumerate(sorted(declared)):
            extremes = _extremes(declared[name])
            if any(legal.problems({name: declared[name]}, {name: value}) for value in extremes):
                raise NotLoweredError("a parameter that may be drawn and not be legal")
            literals = draft.literal(extremes)
            self.codes[name] = Code(f"{prefix}p{position}", items_kind(extremes), bound=literals.bound)
            if "enum" in declared[name]:
                self._options[name] = literals.text

    def read_by(self, texts: list[str]) -> set[str]:
        """Return the parameters whose variables occur in some source."""
        words = {word for text in texts for word in re.findall(r"\w+", text)}
        return {name for name, code in self.codes.items() if code.text in words}

    def sample(self, name: str, draw: str) -> str:
        """Return the source of a drawn value, as `params.sample` computes it."""
        schema = self._declared[name]
        if "enum" in schema:
            return f"{self._options[name]}[{_choice(draw, len(schema['enum']))}]"
        if schema["type"] == "boolean":
            return f"{_choice(draw, 2)} == 1"
        if schema["type"] == "string":
            return '""'
        low, high = schema["minimum"], schema["maximum"]
        if schema["type"] == "integer":
            return f"float({int(low)} + ({_choice(draw, int(high) - int(low) + 1)}))"
        return f"{low!r} + ({draw} >> 11) * {2.0**-53!r} * {high - low!r}"


def _extremes(schema: dict[str, Any]) -> list[Any]:
    """Return the possible values of a parameter, or its extremes."""
    if "enum" in schema:
        return list(schema["enum"])
    if schema["type"] in {"integer", "number"}:
        draws = iter([0, _LARGEST_DRAW])
        return [legal.sample({"": schema}, draws.__next__)[""] for _ in range(2)]
    return [""] if schema["type"] == "string" else [False, True]


def _choice(draw: str, count: int) -> str:
    return f"({draw} >> 32) * {count} >> 32"


def _guarded(condition: Code, lines: list[str]) -> list[str]:
    return lines if condition.literal is True else [f"if {condition.text}:", *indented(lines)]
