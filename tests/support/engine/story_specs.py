"""A scenario with all lowered keys, and canaries in every text that is not known at the start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.engine.specs import action, at_most, event, spec

if TYPE_CHECKING:
    from support.engine.specs import Json


WORDS = {
    "first": "canary-first",
    "second": "canary-second",
    "note": "canary-note",
    "claim": "canary-claim",
    "help": "canary-terms",
}
PLACES: Json = {
    "near": {"name": "Near", "description": "Wide.", "exits": ["middle"]},
    "middle": {"exits": ["near", "far"]},
    "far": {"exits": ["middle"]},
}
ENTITIES: list[Json] = [
    {"id": "me", "name": "Me", "playable": True, "place": "near"},
    {"id": "beta", "name": "Beta", "playable": True, "place": "middle", "secret": "canary-secret"},
    {"id": "gamma", "name": "Gamma", "place": "middle"},
]
CLUES: Json = {
    "mark": {
        "text": {"deal": "owner", "texts": {"first": WORDS["first"], "second": WORDS["second"]}},
        "about": "owner",
    },
    "odd key": {"text": WORDS["note"]},
}
STATEMENTS: Json = {
    "claim": {
        "by": "beta",
        "text": WORDS["claim"],
        "true": {"===": [{"var": "state.hidden.owner"}, "first"]},
        "broken_by": "mark",
    },
}
PROMISES: Json = {
    "help": {
        "by": "me",
        "to": "beta",
        "terms": WORDS["help"],
        "due": 2,
        "hears": [{"entity": "gamma", "after": 2}],
    },
}
GO: Json = {"op": "move", "entity": "me", "to": {"param": "to"}}
ACTIONS: list[Json] = [
    action("go", [GO], params={"to": {"type": "string", "enum": [*PLACES]}}),
    {
        **action(
            "search",
            [{"op": "reveal", "clue": "mark"}, {"op": "dec", "path": "state.a", "value": 1}],
            preconditions={"===": [{"var": "state.places.me"}, "far"]},
        ),
        "once": True,
    },
    action("ask", [{"op": "say", "statement": "claim"}]),
    action("pledge", [{"op": "promise", "promise": "help"}]),
    action("fulfil", [{"op": "keep", "promise": "help"}, {"op": "inc", "path": "state.b", "value": 1}]),
    action("betray", [{"op": "break", "promise": "help"}]),
    action(
        "wait",
        [
            {
                "op": "schedule",
                "id": "later",
                "after": 1,
                "once": True,
                "effects": [{"op": "addlog", "message": "x"}],
            }
        ],
    ),
    action("name", [{"op": "inc", "path": "state.b", "value": 5}], preconditions={"known": "mark"}),
]
EVENTS: list[Json] = [
    {**event("wind", [{"op": "reveal", "clue": "odd key"}], weight=0.2), "once": True},
    event("walk", [{"op": "move", "entity": "gamma", "to": "near"}], weight=0.3),
]
ENDS: list[Json] = [
    at_most("out", "state.a", 0),
    {"id": "shame", "when": {"===": [{"var": "state.promises.help"}, "broken"]}},
]
WINS: list[Json] = [{"id": "up", "when": {"and": [{"broken": "claim"}, {">=": [{"var": "state.b"}, 6]}]}}]


def story(**parts: Any) -> Json:
    """Return the scenario; `parts` replace its top-level keys, and None leaves one out."""
    whole = spec(
        **{
            "spec_version": "1.1",
            "state": {"a": 12, "b": 2, "hidden": {"owner": "first"}},
            "deal": [{"id": "owner", "path": "state.hidden.owner", "values": ["first", "second"]}],
            "entities": ENTITIES,
            "places": PLACES,
            "clues": CLUES,
            "statements": STATEMENTS,
            "promises": PROMISES,
            "actions": ACTIONS,
            "random_events": EVENTS,
            "loss_conditions": ENDS,
            "win_conditions": WINS,
            "negativity_budget": {"min_fail_rate": 0.2, "decay_per_turn": {"state.a": 0.5}},
            **parts,
        },
    )
    return {key: value for key, value in whole.items() if value is not None}
