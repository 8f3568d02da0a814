"""The golden transcripts: recorded sessions that every client verifies. `make transcripts` writes them.

`tests/data/transcripts` has one bundle for each session, and the index of what a verifier must find. A change
in them is a change of the engine's meaning or of the bundle format, and wants a new version of one of these.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.certification.types import encode
from peripety.errors import UnavailableError
from peripety.scenario.spec_generator.generator import generate_spec
from peripety.session.types import NarratorOptions, PlayerAction, Seat, SeatConfig
from support.engine.specs import action, at_most, event, never, spec
from support.engine.story_specs import story
from support.gateway.fake_gateway import calling
from support.repo.repository import ROOT
from support.scenario.batches import certified, contest
from support.session.sessions import outcome
from support.session.transcripts import TOLD, Recorder, Transcript, entry_of, record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from support.engine.specs import Json

GOLDEN_FOLDER = ROOT / "tests" / "data" / "transcripts"
FOLDER = Path(os.environ.get("PERIPETY_TRANSCRIPTS", GOLDEN_FOLDER))
"""Folder of the transcripts that the clients verify."""
INDEX = FOLDER / "index.json"
LARGEST_SAFE = 2**53 - 1
ENTITIES: list[Json] = [{"id": "p", "playable": True}, {"id": "q", "playable": True}, {"id": "r"}]
UP: Json = {"op": "inc", "path": "state.a", "value": 1}
DOWN: Json = {"op": "dec", "path": "state.a", "value": 1}
CLEAR: Json = {"op": "set", "path": "state.list", "value": []}
POP: Json = {"op": "pop", "path": "state.list"}
NOTHING = outcome("It is told.", state_changes=[])


@dataclass(frozen=True)
class Golden:
    """A session to record: its scenario, and what is played."""

    name: str
    spec: Json
    course: Callable[[Recorder], Awaitable[None]]
    certified: bool = False


GOLDEN: list[Golden] = []


def golden(spec: Json, **more: Any) -> Callable[[Callable[[Recorder], Awaitable[None]]], None]:
    """Add a session; the name of the function is the name of its file."""

    def add(course: Callable[[Recorder], Awaitable[None]]) -> None:
        GOLDEN.append(Golden(course.__name__, spec, course, **more))

    return add


def endless(value: Json) -> Json:
    """Return a scenario whose runs never end."""
    conditions = [*value["loss_conditions"], *value.get("win_conditions", ())]
    for ending in conditions:
        ending["when"] = {"<": [1, 0]}
    return value


OPERATIONS = spec(
    actions=[
        action("set", [{"op": "set", "path": "state.note", "value": "m"}]),
        action("inc", [UP]),
        action("dec", [{"op": "dec", "path": "state.a", "value": 0.25}]),
        action("double", [{"op": "mul", "path": "state.b", "value": 2}]),
        action("halve", [{"op": "mul", "path": "state.b", "value": 0.5}]),
        action("patch", [{"op": "patch", "path": "state.tree", "value": {"y": 1, "x": [None, True]}}]),
        action("push", [{"op": "push", "path": "state.list", "value": {"k": "v"}}]),
        action("pop", [{"op": "pop", "path": "state.list"}]),
        action("log", [{"op": "addlog", "message": "noted"}]),
        action("plan", [{"op": "schedule", "id": "later", "after": 2, "effects": [DOWN]}]),
        {
            **action("derive", [{"op": "inc", "path": "state.a", "value": "much"}]),
            "derives": {"much": {"/": [{"var": "state.b"}, 3]}},
        },
    ],
    random_events=[
        event("lasting", [{"op": "dec", "path": "state.a", "value": 0.5}], weight=0.2, duration="3h"),
        event("once", [{"op": "set", "path": "state.flag", "value": True}], weight=0.1),
    ],
    negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.b": 0.125}},
)


@golden(OPERATIONS)
async def operations(game: Recorder) -> None:
    await game.start()
    random = Random(1)
    for _ in range(120):
        await game.play(*(one["id"] for one in random.choices(OPERATIONS["actions"], k=2)))


SCHEDULES = spec(
    actions=[
        action("after", [{"op": "schedule", "id": "one", "after": "2h", "effects": [UP]}]),
        action("at", [{"op": "schedule", "id": "two", "at": 6, "effects": [DOWN]}]),
        action(
            "chain",
            [
                {
                    "op": "schedule",
                    "id": "three",
                    "after": 1,
                    "effects": [UP, {"op": "schedule", "id": "four", "after": 1, "effects": [DOWN, DOWN]}],
                },
            ],
        ),
    ],
)


@golden(SCHEDULES)
async def schedules(game: Recorder) -> None:
    await game.start()
    for name in ("after", "after", "at", "chain", "chain", "", "after", "at", "", "", "chain", "", ""):
        await game.play(*filter(None, [name]))


@golden(
    spec(
        random_events=[event(f"e{n}", [{"op": "dec", "path": "state.a", "value": n}]) for n in range(1, 4)]
        + [event("long", [{"op": "inc", "path": "state.b", "value": 0.1}], duration="4h")],
        negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.a": 0.1, "state.b": 0.2}},
    ),
)
async def random_events(game: Recorder) -> None:
    await game.start(seed=LARGEST_SAFE)
    for _ in range(30):
        await game.play()


@golden(spec(entities=ENTITIES))
async def rolls(game: Recorder) -> None:
    await game.start()
    for difficulty in (1, 8, 15, 30):
        dice = [("roll", {"kind": "k", "difficulty": difficulty}), ("roll", {"kind": "k", "difficulty": 11})]
        named = ("roll", {"kind": "other", "target": "q", "difficulty": difficulty})
        await game.play("act", answers=[calling(*dice, named), TOLD])


SCOPE: list[Json] = [
    {"path": "state.a", "ops": ["inc", "dec", "set", "mul"], "max_magnitude": 5},
    {"path": "state.tree", "ops": ["patch", "set"]},
    {"path": "state.list", "ops": ["push", "pop"]},
]


@golden(spec(entities=ENTITIES, narrator_scope=SCOPE))
async def narrated(game: Recorder) -> None:
    await game.start()
    changes: list[Json] = [
        {"op": "inc", "path": "state.a", "value": 2.5},
        {"op": "mul", "path": "state.a", "value": -1},
        {"op": "patch", "path": "state.tree", "value": {"z": {"deep": [1, 2.5, None]}}},
        {"op": "push", "path": "state.list", "value": "é"},
        {"op": "pop", "path": "state.list"},
        {"op": "set", "path": "state.a", "value": 0},
    ]
    for change in changes:
        await game.play("act", answers=[outcome("It is told.", state_changes=[change])])
    refused = {"op": "set", "path": "state.note", "value": "x"}
    await game.play("act", answers=[outcome("It is told.", state_changes=[refused]), NOTHING])


@golden(spec(entities=ENTITIES))
async def repairs(game: Recorder) -> None:
    await game.start()
    await game.play("act", answers=["no JSON", TOLD])
    await game.play("act", answers=[outcome("Bad.", extra=1), outcome("Good.")])
    await game.play("act", answers=[outcome("Bad.", extra=1), outcome("Bad.", extra=2)])
    await game.play("act", answers=[UnavailableError("busy", code="PROVIDER_BUSY")])
    await game.play("act", answers=[calling(("query", {"path": "state.a"})), TOLD])
    await game.play()


@golden(spec(entities=ENTITIES))
async def words(game: Recorder) -> None:
    await game.start()
    await game.play(input="I try it.", answers=[calling(("action:act", {})), TOLD])
    await game.play(input="?", answers=[calling(("ask_player", {"question": "Which one?"}))])
    await game.play(input="I wait.", answers=[calling(("no_action", {})), TOLD])
    await game.play("act", input="With words.")


UNICODE_KEYS = ("é", "e\u0301", "😀", "\ufb33", "א", "\u2028", "odd key", "\u00ad", "\U0001d518")
TEXTS = [
    "",
    "ß",
    "𐐷",
    '\t\n\r\b\f\\"/',
    "\u0001\u001f\u007f\u0080",
    "\ufeff",
    "שָׁלוֹם",
    "\u200d👩\u200d🚀",
    "\uff11\uff12",
]


@golden(
    spec(
        name="Ünï 😀",
        entities=[{"id": "p", "name": "Ⓟ", "playable": True}],
        state={"a": 1, "t": "", "deep": dict.fromkeys(UNICODE_KEYS, 0), "list": []},
        actions=[
            action(
                "write",
                [
                    {"op": "set", "path": "state.t", "value": "said"},
                    {"op": "push", "path": "state.list", "value": "said"},
                    {"op": "addlog", "message": "Ω ≤ 😀"},
                ],
                params={"text": {"type": "string", "enum": TEXTS}},
            )
            | {"derives": {"said": {"cat": [{"var": "params.text"}, "·"]}}},
            action(
                "count",
                [{"op": "inc", "path": f"state.deep[{json.dumps(key)}]", "value": 1} for key in UNICODE_KEYS],
            ),
            action(
                "whole", [{"op": "set", "path": "state.deep", "value": dict.fromkeys(UNICODE_KEYS, "😀")}]
            ),
        ],
    ),
)
async def unicode(game: Recorder) -> None:
    await game.start()
    told = outcome("Oni rakontas: 😀 „ŝanĝo“ \u202eabc\u202c.")
    for text in TEXTS:
        await game.play(PlayerAction("write", {"text": text}), input=f"“{text or '-'}” 😀", answers=[told])
    await game.play("count", answers=[told])
    await game.play("whole", "count", answers=[told])


def _by(op: str, value: float) -> Json:
    return {"op": op, "path": "state.n", "value": value}


@golden(
    spec(
        state={"n": LARGEST_SAFE, "zero": 0, "third": 0},
        actions=[
            action("up", [_by("inc", 1)]),
            action("up2", [_by("inc", 2)]),
            action("down", [_by("dec", LARGEST_SAFE)]),
            action("down2", [_by("dec", LARGEST_SAFE)]),
            action("negate", [_by("mul", -1)]),
            action("tiny", [_by("set", 5e-324)]),
            action("small", [_by("set", 1e-6)]),
            action("smaller", [_by("set", 1e-7)]),
            action("plain", [_by("set", 1e20), _by("mul", 10), _by("mul", 1.5)]),
            action("large", [_by("set", 1.7976931348623157e308)]),
            action("zero", [_by("set", 0), _by("mul", -1)]),
            action("sum", [_by("set", 0.1), _by("inc", 0.2)]),
            action("one", [_by("set", 1.0)]),
            action("odd", [_by("set", 1.2345678901234568e17), _by("set", 4.35), _by("set", 2.5e-8)]),
            {
                **action("third", [{"op": "set", "path": "state.third", "value": "third"}]),
                "derives": {"third": {"/": [{"var": "state.n"}, 3]}},
            },
            {
                **action("take", [_by("set", 0), {"op": "inc", "path": "state.n", "value": "by"}]),
                "params": {"x": {"type": "number", "minimum": -LARGEST_SAFE, "maximum": LARGEST_SAFE}},
                "derives": {"by": {"*": [{"var": "params.x"}, 4]}},
            },
        ],
    ),
)
async def numbers(game: Recorder) -> None:
    await game.start(seed=LARGEST_SAFE - 1)
    names = "up up up2 third negate up2 third tiny third small third smaller third plain third large third"
    for name in f"{names} zero sum third one odd third down down2".split():
        await game.play(name)
    for value in (LARGEST_SAFE, -LARGEST_SAFE, 0.1, -0.0, 1e-10, 2**52 + 0.5, 3):
        await game.play(PlayerAction("take", {"x": value}))


@golden(
    spec(
        actions=[
            action("act", [UP], params={"n": {"type": "integer", "minimum": 1, "maximum": 3}}),
            action("shut", [UP], preconditions={"<": [{"var": "state.a"}, 0]}),
            {
                **action("fail", [{"op": "inc", "path": "state.a", "value": "x"}]),
                "derives": {"x": {"/": [1, {"-": [{"var": "state.b"}, 2]}]}},
            },
            action("empty", [CLEAR, POP]),
            action("plan", [CLEAR, {"op": "schedule", "id": "later", "after": 1, "effects": [POP]}]),
        ],
        random_events=[
            {
                **event("broken", [{"op": "inc", "path": "state.a", "value": "x"}]),
                "derives": {"x": {"%": [1, {"-": [{"var": "state.b"}, 2]}]}},
            },
        ],
    ),
)
async def refused(game: Recorder) -> None:
    await game.start()
    good = PlayerAction("act", {"n": 1})
    illegal = (PlayerAction("act", {"n": 4}), PlayerAction("act", {"m": "x"}))
    for other in ("shut", "fail", "empty", *illegal, "plan", good):
        await game.play(good, other)
    for _ in range(6):
        await game.play()


LUCK = spec(
    entities=ENTITIES,
    state={"a": 1, "luck": 0},
    random_events=[
        event(f"e{n}", [{"op": "inc", "path": "state.luck", "value": n}], weight=0.25) for n in range(1, 5)
    ],
)


@golden(LUCK)
async def forked(game: Recorder) -> None:
    await game.start()
    for _ in range(8):
        await game.play("act")
    await game.fork(4, seed=LARGEST_SAFE)
    for _ in range(5):
        await game.play()
    await game.fork(7)
    await game.play("act")


@golden(LUCK)
async def forked_at_the_start(game: Recorder) -> None:
    await game.start()
    await game.play("act")
    await game.fork(0, seed=0)
    for _ in range(4):
        await game.play("act")


@golden(LUCK)
async def forked_without_turns(game: Recorder) -> None:
    await game.start()
    for _ in range(3):
        await game.play("act")
    await game.fork(2, seed=99)


@golden(LUCK)
async def rewound(game: Recorder) -> None:
    await game.start()
    for _ in range(20):
        await game.play("act")
    await game.rewind(17)
    await game.play()
    await game.rewind(5)
    for _ in range(4):
        await game.play()


ENDS = spec(
    state={"a": 3, "b": 0},
    actions=[action("lose", [DOWN]), action("win", [{"op": "inc", "path": "state.b", "value": 1}])],
    loss_conditions=[at_most("gone", "state.a", 0) | {"message": "It is over"}, never("other")],
    win_conditions=[{"id": "full", "when": {">=": [{"var": "state.b"}, 3]}}],
)


@golden(ENDS)
async def lost(game: Recorder) -> None:
    await game.start()
    for _ in range(3):
        await game.play("lose")


@golden(ENDS)
async def won(game: Recorder) -> None:
    await game.start()
    for _ in range(3):
        await game.play("win")


PRIVATE = spec(
    entities=ENTITIES,
    state={"a": 1, "private": {"p": {"x": 1}, "q": {"x": 2}}, "hidden": {"h": 3}},
    actions=[
        action("act", [UP, {"op": "inc", "path": "state.private.p.x", "value": 1}]),
        action("hide", [{"op": "inc", "path": "state.hidden.h", "value": 1}]),
    ],
    visibility=[{"path": "state.a", "to": ["p"]}],
)


@golden(PRIVATE)
async def points_of_view(game: Recorder) -> None:
    await game.start(narrator=NarratorOptions(language="en"))
    memory = {"scope": "s", "target_id": "q", "content": "Kept.", "visibility": "private"}
    fact = {"scope": "fact", "target_id": "world", "content": "So it is.", "visibility": "public"}
    told = outcome(
        "It is told.",
        visible_dialogue=[{"entity_id": "r", "utterance": "Words."}],
        hidden_memory_updates=[memory, fact],
    )
    for name, pov in (("act", "p"), ("hide", "q"), ("act", None), ("hide", "p")):
        await game.play(name, pov=pov, answers=[told])


@golden(PRIVATE)
async def seats(game: Recorder) -> None:
    await game.start(table=SeatConfig((Seat("one", "p"), Seat("two", "q"))))
    for seat in ("one", "two") * 4:
        await game.play("act", seat_id=seat)


@golden(spec())
async def without_turns(game: Recorder) -> None:
    await game.start()


@golden(contest(), certified=True)
async def with_certificate(game: Recorder) -> None:
    await game.start(seed=3)
    for _ in range(3):
        await game.play("shore")


DEAL = spec(
    spec_version="1.1",
    state={"a": 5, "hidden": {"owner": "first", "number": 0, "tree": {}}, "b": 0},
    bounds={"state.a": {"min": 0, "max": 10}, "state.b": {"max": 2.5}},
    deal=[
        {"id": "owner", "path": "state.hidden.owner", "values": ["first", "é😀", "third"]},
        {"id": "number", "path": "state.hidden.number", "values": [0.1, 1e-7, LARGEST_SAFE, -1]},
        {"id": "tree", "path": "state.hidden.tree", "values": [{"x": [1, None]}, {"\ufb33": 1, "😀": 2}]},
    ],
    actions=[
        action("up", [{"op": "inc", "path": "state.a", "value": 4}]),
        action("down", [{"op": "dec", "path": "state.a", "value": 7}]),
        action("set", [{"op": "patch", "path": "state", "value": {"b": 9, "a": -3}}]),
        action(
            "name",
            [{"op": "inc", "path": "state.b", "value": 1}],
            preconditions={"===": [{"var": "state.hidden.owner"}, "third"]},
        ),
    ],
)


@golden(DEAL)
async def bounds_and_deal(game: Recorder) -> None:
    await game.start(seed=5)
    for name in ("up", "up", "down", "down", "set", "up", "set"):
        await game.play(name, "name")


@golden(DEAL)
async def dealt_otherwise(game: Recorder) -> None:
    await game.start(seed=11)
    await game.play("up", "name")
    await game.play("set")
    await game.fork(1, seed=12)
    await game.play("down", "name")


@golden(
    spec(
        spec_version="1.1",
        state={"said": {"first": 0, "odd key": 0, "😀": 0}, "a": 1},
        actions=[
            action(
                "say",
                [
                    {"op": "inc", "path": "state.said[params.who]", "value": 1},
                    {
                        "op": "addlog",
                        "message": {"param": "who", "texts": {"first": "One", "odd key": "Ŝ", "😀": "😀"}},
                    },
                ],
                params={"who": {"type": "string", "enum": ["first", "odd key", "😀"]}},
            ),
        ],
        random_events=[event("wind", [UP])],
        premise={"text": "It begins.", "tone": "plain", "person": "second", "tense": "present"},
    ),
)
async def parameters_in_paths(game: Recorder) -> None:
    await game.start()
    for who in ("first", "odd key", "😀", "😀", "first"):
        await game.play(PlayerAction("say", {"who": who}))


STORY = story(loss_conditions=[at_most("out", "state.a", -100), never("other")], win_conditions=None)


@golden(STORY)
async def clues(game: Recorder) -> None:
    await game.start(seed=8)
    await game.play(PlayerAction("go", {"to": "middle"}), "ask")
    await game.play("pledge", "wait")
    await game.play(PlayerAction("go", {"to": "far"}), "search")
    await game.play("search", "name")
    await game.play("fulfil")
    for _ in range(4):
        await game.play()


@golden(STORY)
async def broken_promise(game: Recorder) -> None:
    await game.start(seed=9)
    await game.play("pledge")
    for _ in range(3):
        await game.play(PlayerAction("go", {"to": "far"}))
    await game.play("betray")
    await game.rewind(1)
    await game.play("betray")
    await game.play()
    await game.play()


GENERATED = endless(engine.loads(generate_spec(25, 1)))
GENERATED_STORY = endless(engine.loads(generate_spec(25, 2, with_story=True)))


@golden(GENERATED)
async def generated(game: Recorder) -> None:
    await game.start()
    await game.play_at_random(Random(2), GENERATED, 60)


@golden(GENERATED_STORY)
async def generated_story(game: Recorder) -> None:
    await game.start()
    await game.play_at_random(Random(3), GENERATED_STORY, 60)


@golden(LUCK)
async def two_hundred_turns(game: Recorder) -> None:
    await game.start()
    for turn in range(200):
        await game.play(*(["act"] * (turn % 3)))


async def record_golden(chosen: Golden, folder: Path) -> Transcript:
    """Record a session; `folder` is empty and takes its database."""
    document = json.dumps(chosen.spec).encode()
    certificate = encode(await certified(chosen.spec)) if chosen.certified else None
    return await record(document, chosen.course, f"sqlite:///{folder}/{chosen.name}.db", certificate)


def main() -> None:
    """Record every session, and write the index."""
    index = {}
    for chosen in GOLDEN:
        with tempfile.TemporaryDirectory() as folder:
            transcript = asyncio.run(record_golden(chosen, Path(folder)))
        (FOLDER / f"{chosen.name}.jsonl").write_bytes(transcript.bundle)
        index[f"{chosen.name}.jsonl"] = entry_of(transcript)
    INDEX.write_text(json.dumps(index, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
