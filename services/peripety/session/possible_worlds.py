"""Present states of a session that a viewer cannot distinguish: one for each deal that fits.

A deal that is not drawn from the seed but assumed is put into the state at turn 0, and the recorded turns are
replayed from there. It fits if the viewer would have seen the same after every turn. So a clue that was found
excludes what it refutes, and values that rules derived from the deal belong to the assumed one.

The result depends on what the viewer has seen, and not on the real deal.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.errors import PeripetyError
from peripety.session.turn_transaction import replay_turn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.engine import Program
    from peripety.session.visibility import ViewerProjection


_MAX_WORLDS = 64
# A longer session is replayed for fewer deals.
_MAX_REPLAYED_TURNS = 4_096


def list_possible_snapshots(
    program: Program,
    view: ViewerProjection,
    first_seed: int,
    records: Sequence[Mapping[str, Any]],
    seed: int,
) -> list[bytes]:
    """Return a snapshot for each deal that fits what a viewer has seen, at most 64, in order.

    Args:
        program: the scenario; it has deals.
        view: the view of the viewer.
        first_seed: the seed of the session at turn 0.
        records: the records of all turns, parsed.
        seed: the seed of a choice among too many deals.
    """
    start = program.new_state(first_seed).to_json()
    present, seen = start, [_visible_start(program, view, start)]
    for record in records:
        present, told = _replay(program, view, present, record)
        seen.append(told)
    fitting = []
    for dealt in _list_deals(program.spec["deal"], seed, len(records)):
        snapshot = _with_deal(start, dealt)
        if _visible_start(program, view, snapshot) != seen[0]:
            continue
        try:
            for record, expected in zip(records, seen[1:], strict=True):
                snapshot, told = _replay(program, view, snapshot, record)
                if told != expected:
                    break
            else:
                fitting.append(snapshot)
        except PeripetyError:
            continue
    return fitting or [present]


def _list_deals(
    deals: Sequence[Mapping[str, Any]], seed: int, turns: int
) -> list[tuple[tuple[str, Any], ...]]:
    """Return the joint values of all deals by path; a sample if they are too many."""
    most = max(1, min(_MAX_WORLDS, _MAX_REPLAYED_TURNS // max(turns, 1)))
    paths = [deal["path"] for deal in deals]
    values = [deal["values"] for deal in deals]
    if prod(map(len, values)) <= most:
        return [tuple(zip(paths, joint, strict=True)) for joint in product(*values)]
    return [
        tuple(
            (path, options[engine.draw(seed, f"world:{path}", 0, number) % len(options)])
            for path, options in zip(paths, values, strict=True)
        )
        for number in range(most)
    ]


def _with_deal(snapshot: bytes, dealt: Sequence[tuple[str, Any]]) -> bytes:
    """Return a snapshot of turn 0 with other values of the deals."""
    value = engine.loads(snapshot)
    for path, literal in dealt:
        *holders, last = engine.parse_path(path)[1:]
        holder = value["state"]
        for segment in holders:
            holder = holder[segment]
        holder[last] = literal
    return engine.canonicalize(value)


def _visible_start(program: Program, view: ViewerProjection, snapshot: bytes) -> Any:
    state = program.load_state(snapshot)
    return view.project_state(state.tree()), program.legal_actions(state)


def _replay(
    program: Program,
    view: ViewerProjection,
    snapshot: bytes,
    record: Mapping[str, Any],
) -> tuple[bytes, Any]:
    """Replay a turn; return the snapshot after it, and what the viewer sees of it."""
    result = replay_turn(program, snapshot, record)
    events = [view.project_event(event, view.viewer) for event in result.events]
    return result.snapshot, (events, view.project_state(result.tree), result.legal_actions)
