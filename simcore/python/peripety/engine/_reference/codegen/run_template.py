"""Generated function of a run: the phases of a turn around the statements of the rules.

It includes the persona's turn (legal actions, parameters, choice) and random events: at most one new event,
then lasting ones.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.engine._reference import turn as legal
from peripety.engine._reference.codegen.code import (
    CodeFragment,
    NotLoweredError,
    get_items_kind,
    indent,
    write_dispatch,
)
from peripety.engine._reference.codegen.statements import RuleCompiler
from peripety.engine._reference.turn import PARAM_TRIES

if TYPE_CHECKING:
    from peripety.engine._reference.codegen.code import CodegenContext, Slot, SlotLayout
    from peripety.engine._reference.state import Rules


# Draws of the persona that each row contains; further ones are drawn singly.
_MAX_ROW_DRAWS = 8
_MAX_DRAW = (1 << 64) - 1


class ActionCompiler:
    """Generates the statements of actions for a persona that chooses at random.

    Attributes:
        width: number of the persona's draws that each row should contain.
    """

    def __init__(self, rules: Rules, rule_compiler: RuleCompiler, context: CodegenContext) -> None:
        actions = rules.actions
        self._actions = actions
        self._variants = rules.variants
        self._rule_compiler = rule_compiler
        self._context = context
        self._params = [
            _ParamVariables(action["params"], f"a{n}", context) for n, action in enumerate(actions)
        ]
        drawn = sum(params.count for params in self._params)
        self.width = min(1 + drawn, _MAX_ROW_DRAWS)
        self._index = "index" if drawn else "0"

    def write_statements(self) -> list[str]:
        """Return the statements of the persona's turn."""
        lines = ["legal = []", *(["index = 0"] if self._index == "index" else [])]
        bodies = []
        for number in range(len(self._actions)):
            offered, body = self._write_action(number)
            lines += offered
            bodies.append(body)
        return [
            *lines,
            "if legal:",
            *indent(
                [
                    f"action = legal[({self._draw_source(self._index)} >> 32) * len(legal) >> 32]",
                    *write_dispatch("action", bodies),
                ],
            ),
        ]

    def _write_action(self, number: int) -> tuple[list[str], list[str]]:
        """Return the statements that test whether an action is legal, and those that perform it."""
        action, params = self._actions[number], self._params[number]
        body = self._write_body(number)
        offer = f"legal.append({number})"
        if not params.count:
            condition = self._rule_compiler.compile_condition(action["preconditions"])
            return _guard(condition, [offer]), body
        condition = self._compile_condition(number)
        if params.find_used([condition.text]):
            # Parameters are drawn for each attempt; the last draw is the one that the action uses.
            drawn = self._write_samples(params, [condition.text, *body], self._index)
            attempt = [*drawn, f"index += {params.count}", *_guard(condition, [offer, "break"])]
            return [f"for _ in range({PARAM_TRIES}):", *indent(attempt)], body
        # Draws have no state, so parameters are drawn only for the chosen action.
        place = f"index{number}"
        offered = _guard(condition, [offer, f"{place} = index", f"index += {params.count}"])
        if condition.literal is not True:
            offered += ["else:", *indent([f"index += {PARAM_TRIES * params.count}"])]
        return offered, [*self._write_samples(params, body, place), *body]

    def _write_body(self, number: int) -> list[str]:
        """Return the statements that perform an action, by its variant."""
        params, variants = self._params[number], self._variants[number]
        if not variants:
            return self._rule_compiler.compile_rule(self._actions[number], params.codes)
        lines: list[str] = []
        for values, action in variants:
            test = f"{'elif' if lines else 'if'} {self._variant_test(number, values)}:"
            lines += [test, *indent(self._rule_compiler.compile_rule(action, params.codes))]
        return lines

    def _compile_condition(self, number: int) -> CodeFragment:
        """Return the code of the preconditions of an action with parameters, by its variant."""
        params, variants = self._params[number], self._variants[number]
        actions = [variant.action for variant in variants] or [self._actions[number]]
        conditions = [
            self._rule_compiler.compile_condition(action["preconditions"], params.codes, PARAM_TRIES)
            for action in actions
        ]
        *others, last = conditions
        text = last.operand
        for condition, variant in zip(others, variants, strict=False):
            text = f"{condition.operand} if {self._variant_test(number, variant.values)} else {text}"
        if len({condition.text for condition in conditions}) == 1:
            return last
        may_fail = any(condition.may_fail for condition in conditions)
        return replace(last, text=text, literal=None, may_fail=may_fail, is_atom=False)

    def _variant_test(self, number: int, values: dict[str, str]) -> str:
        codes = self._params[number].codes
        tests = (
            f"{codes[name].text} == {self._context.add_constant(value)}" for name, value in values.items()
        )
        return " and ".join(tests)

    def _write_samples(self, params: _ParamVariables, readers: list[str], place: str) -> list[str]:
        return [
            f"{params.codes[name].text} = {params.sample_source(name, self._draw_source(place, position))}"
            for position, name in enumerate(sorted(params.codes))
            if name in params.find_used(readers)
        ]

    def _draw_source(self, index: str, more: int = 0) -> str:
        """Return the source of the persona's draw at an index."""
        if index == "0":
            return "draws[1]"
        index = f"{index} + {more}" if more else index
        return f"(draws[1 + {index}] if {index} < {self.width} else draw(seed, POLICY_KEY, turn, {index}))"


class _ParamVariables:
    """Parameters of an action: their variables and the source of their draws.

    Raises:
        NotLoweredError: a drawn value may not be legal.
    """

    def __init__(self, declared: dict[str, Any], prefix: str, context: CodegenContext) -> None:
        self.count = len(declared)
        self._declared = declared
        self._options: dict[str, str] = {}
        self.codes: dict[str, CodeFragment] = {}
        for position, name in enumerate(sorted(declared)):
            extremes = _find_extremes(declared[name])
            if any(
                legal.find_parameter_problems({name: declared[name]}, {name: value}) for value in extremes
            ):
                raise NotLoweredError("a parameter that may be drawn and not be legal")
            literals = context.literal_code(extremes)
            self.codes[name] = CodeFragment(
                f"{prefix}p{position}",
                get_items_kind(extremes),
                bound=literals.bound,
            )
            if "enum" in declared[name]:
                self._options[name] = literals.text

    def find_used(self, texts: list[str]) -> set[str]:
        """Return the parameters whose variables occur in some source."""
        words = {word for text in texts for word in re.findall(r"\w+", text)}
        return {name for name, code in self.codes.items() if code.text in words}

    def sample_source(self, name: str, draw: str) -> str:
        """Return the source of a drawn value, as `params.sample` computes it."""
        schema = self._declared[name]
        if "enum" in schema:
            return f"{self._options[name]}[{_choice_source(draw, len(schema['enum']))}]"
        if schema["type"] == "boolean":
            return f"{_choice_source(draw, 2)} == 1"
        if schema["type"] == "string":
            return '""'
        low, high = schema["minimum"], schema["maximum"]
        if schema["type"] == "integer":
            return f"float({int(low)} + ({_choice_source(draw, int(high) - int(low) + 1)}))"
        return f"{low!r} + ({draw} >> 11) * {2.0**-53!r} * {high - low!r}"


def _find_extremes(schema: dict[str, Any]) -> list[Any]:
    """Return the possible values of a parameter, or its extremes."""
    if "enum" in schema:
        return list(schema["enum"])
    if schema["type"] in {"integer", "number"}:
        draws = iter([0, _MAX_DRAW])
        return [legal.sample_params({"": schema}, draws.__next__)[""] for _ in range(2)]
    return [""] if schema["type"] == "string" else [False, True]


def _choice_source(draw: str, count: int) -> str:
    return f"({draw} >> 32) * {count} >> 32"


def _guard(condition: CodeFragment, lines: list[str]) -> list[str]:
    return lines if condition.literal is True else [f"if {condition.text}:", *indent(lines)]


class EventCompiler:
    """Generates the statements of a scenario's events.

    Attributes:
        any_lasts: True if some event lasts several turns.
    """

    def __init__(self, rules: Rules, rule_compiler: RuleCompiler) -> None:
        self._events: list[Any] = rules.events
        self._turns = rules.event_turns
        self._rule_compiler = rule_compiler
        self.any_lasts = any(turns > 1 for turns in self._turns)

    def write_statements(self) -> list[str]:
        """Return the statements of a turn's events."""
        if not self._events:
            return []
        bodies = [self._rule_compiler.compile_rule(event) for event in self._events]
        if not self.any_lasts:
            return self._draw_event(bodies)
        return [
            "happening = [*lasting]",
            *self._draw_event([self._begin_event(number) for number in range(len(bodies))]),
            "for event in happening:",
            *indent(write_dispatch("event", bodies)),
            "for event in happening:",
            *indent(["if lasting.get(event) == turn: del lasting[event]"]),
        ]

    def _begin_event(self, number: int) -> list[str]:
        """Return the start of an event; it precedes lasting events."""
        begin = [f"happening.insert(0, {number})"]
        if self._turns[number] > 1:
            begin.append(f"lasting[{number}] = turn + {self._turns[number] - 1}")
        return begin

    def _draw_event(self, outcomes: list[list[str]]) -> list[str]:
        """Return the draw among eligible events, with the statements of each outcome."""
        conditions = [self._rule_compiler.compile_condition(event["when"]) for event in self._events]
        total = 0.0
        for event in self._events:
            total += event["weight"]
        lines = [f"chance = (draws[0] >> 11) * {2.0**-53!r}"]
        if total <= 1 and not any(condition.may_fail for condition in conditions):
            return lines + self._draw_lazily(conditions, outcomes)
        return lines + self._draw_eagerly(conditions, outcomes, total)

    def _draw_lazily(self, conditions: list[CodeFragment], outcomes: list[list[str]]) -> list[str]:
        """Test conditions in order, up to the drawn event; only for conditions that cannot fail."""
        lines = ["reached = 0.0"]
        for number, (condition, outcome) in enumerate(zip(conditions, outcomes, strict=True)):
            within = f"chance < (reached := reached + {self._events[number]['weight']!r})"
            eligible = self._eligibility_test(number, condition)
            test = f"{eligible} and {within}" if eligible else within
            lines += [f"{'elif' if number else 'if'} {test}:", *indent(outcome)]
        return lines

    def _draw_eagerly(
        self,
        conditions: list[CodeFragment],
        outcomes: list[list[str]],
        total: float,
    ) -> list[str]:
        """Evaluate all conditions first; an ineligible event adds no weight."""
        lines, reached = [], "0.0"
        for number, condition in enumerate(conditions):
            weight = repr(self._events[number]["weight"])
            more = f"{reached} + {weight}" if number else weight
            eligible = self._eligibility_test(number, condition)
            lines.append(f"w{number} = {more if not eligible else f'{more} if {eligible} else {reached}'}")
            reached = f"w{number}"
        if total > 1:
            lines.append(f"if {reached} > 1.0: chance *= {reached}")
        for number, outcome in enumerate(outcomes):
            lines += [f"{'elif' if number else 'if'} chance < w{number}:", *indent(outcome)]
        return lines

    def _eligibility_test(self, number: int, condition: CodeFragment) -> str:
        """Return the test for a new event; empty if it is always eligible."""
        parts = [f"{number} not in lasting"] if self._turns[number] > 1 else []
        if condition.literal is not True:
            parts.append(condition.operand if parts or not condition.is_atom else condition.text)
        return " and ".join(parts)


def write_run(rules: Rules, layout: SlotLayout, context: CodegenContext, persona: str) -> tuple[str, int]:
    """Generate the source of a run under a persona.

    Returns:
        The source of `play(seed, horizon, rows)`, and the number of the persona's draws in a row. `play`
        returns the outcome, the condition, the number of turns, and the values of the slots.
    """
    writer = RuleCompiler(rules, layout, context)
    actions = ActionCompiler(rules, writer, context) if persona == "random" else None
    events = EventCompiler(rules, writer)
    endings = [*_write_endings("lost", rules.losses, writer), *_write_endings("won", rules.wins, writer)]
    turn = [
        *(actions.write_statements() if actions else []),
        *(endings if rules.ends_early else []),
        *events.write_statements(),
        *writer.compile_decay(),
        *endings,
    ]
    turn = _write_opening(writer.scheduled_statements) + turn
    slots = list(layout.slots.values())
    lines = [
        *(f"{slot.name} = {_initial_source(slot, context)}" for slot in slots),
        *writer.compile_deals(),
        *(
            ["pending = {}  # entry: when it is due, its statements, the values that it brings"]
            if writer.scheduled_statements
            else []
        ),
        *(["lasting = {}  # event: its last turn; in order of onset"] if events.any_lasts else []),
        'outcome, condition = "survived", None',
        "for turn, draws in zip(range(1, horizon + 1), rows):",
        *indent((["now = float(turn)"] if context.uses_turn else []) + turn),
        f"return outcome, condition, turn, ({''.join(f'{slot.name}, ' for slot in slots).rstrip()})",
    ]
    source = "\n".join(["def play(seed, horizon, rows):", *indent(lines), ""])
    return source, actions.width if actions else 0


def _initial_source(slot: Slot, context: CodegenContext) -> str:
    if slot.is_optional:
        return "None"
    code = context.literal_code(slot.initial)
    context.record_growth(slot, to=code.bound)
    return f"[*{code.text}]" if slot.kind.is_list else code.text


def _write_opening(later: list[list[str]]) -> list[str]:
    """Return the statements that apply due entries; entries they schedule are due in later turns."""
    if not later:
        return []
    return [
        "due = []",
        "for entry, (when, number, values) in [*pending.items()]:",
        *indent(["if when == turn:", *indent(["del pending[entry]", "due.append((number, values))"])]),
        "for number, values in due:",
        *indent(write_dispatch("number", later)),
    ]


def _write_endings(outcome: str, conditions: list[Any], rule_compiler: RuleCompiler) -> list[str]:
    lines = []
    for number, condition in enumerate(conditions):
        text = rule_compiler.compile_condition(condition["when"]).text
        lines += [f"if {text}:", *indent([f'outcome, condition = "{outcome}", {number}', "break"])]
    return lines
