"""Generated function of a run: the phases of a turn around the statements of the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._pure.compiled.actions import ActionWriter
from peripety.sim._pure.compiled.events import EventWriter
from peripety.sim._pure.compiled.rules import RuleWriter
from peripety.sim._pure.compiled.source import dispatch, indented

if TYPE_CHECKING:
    from peripety.sim._pure.compiled.draft import Draft
    from peripety.sim._pure.compiled.slots import Layout, Slot
    from peripety.sim._pure.state import Rules

__all__ = ["write_run"]


def write_run(rules: Rules, layout: Layout, draft: Draft, persona: str) -> tuple[str, int]:
    """Generate the source of a run under a persona.

    Returns:
        The source of `play(seed, horizon, rows)`, and the number of the persona's draws in a row. `play`
        returns the outcome, the condition, the number of turns, and the values of the slots.
    """
    writer = RuleWriter(rules, layout, draft)
    actions = ActionWriter(rules.actions, writer, draft) if persona == "random" else None
    events = EventWriter(rules, writer)
    turn = [
        *(actions.lines() if actions else []),
        *events.lines(),
        *writer.decay(),
        *_ends("lost", rules.losses, writer),
        *_ends("won", rules.wins, writer),
    ]
    turn = _opening(writer.later) + turn
    slots = list(layout.slots.values())
    lines = [
        *(f"{slot.name} = {_initial(slot, draft)}" for slot in slots),
        *(
            ["pending = {}  # entry: when it is due, its statements, the values that it brings"]
            if writer.later
            else []
        ),
        *(["lasting = {}  # event: its last turn; in order of onset"] if events.any_lasts else []),
        'outcome, condition = "survived", None',
        "for turn, draws in zip(range(1, horizon + 1), rows):",
        *indented((["now = float(turn)"] if draft.uses_turn else []) + turn),
        f"return outcome, condition, turn, ({''.join(f'{slot.name}, ' for slot in slots).rstrip()})",
    ]
    source = "\n".join(["def play(seed, horizon, rows):", *indented(lines), ""])
    return source, actions.width if actions else 0


def _initial(slot: Slot, draft: Draft) -> str:
    if slot.is_optional:
        return "None"
    code = draft.literal(slot.initial)
    draft.grows(slot, to=code.bound)
    return f"[*{code.text}]" if slot.kind.is_list else code.text


def _opening(later: list[list[str]]) -> list[str]:
    """Return the statements that apply due entries; entries they schedule are due in later turns."""
    if not later:
        return []
    return [
        "due = []",
        "for entry, (when, number, values) in [*pending.items()]:",
        *indented(["if when == turn:", *indented(["del pending[entry]", "due.append((number, values))"])]),
        "for number, values in due:",
        *indented(dispatch("number", later)),
    ]


def _ends(outcome: str, conditions: list[Any], writer: RuleWriter) -> list[str]:
    lines = []
    for number, condition in enumerate(conditions):
        text = writer.condition(condition["when"]).text
        lines += [f"if {text}:", *indented([f'outcome, condition = "{outcome}", {number}', "break"])]
    return lines
