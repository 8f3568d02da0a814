from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.certification.types import certificate_hash, encode
from peripety.session.bundles.format import MAX_LINE_BYTES
from peripety.session.bundles.verifier import BundleVerification
from peripety.session.events import DialogueSpoken
from peripety.session.types import (
    DieRollRequest,
    NarratorMemory,
    NarratorOptions,
    PlayerAction,
    Seat,
    SeatConfig,
    TurnOrder,
)
from support.engine.specs import action, document, event
from support.scenario.batches import certified_alone, contest
from support.session.bundles import Plan, bundle_of, play, resealed, verdict_on, verified
from support.session.sessions import DEALT_ENDING

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.session.bundles import Game


ACT = PlayerAction("act", {})
HEADER, SPECIFICATION, FIRST_TURN = 1, 2, 3


def a_game(**parts: Any) -> Game:
    """Three turns: in the first is all that a turn can have, the second is under another seed."""
    program = engine.compile(
        document(
            actions=[
                action("act", [{"op": "inc", "path": "state.a", "value": 1}]),
                action("big", [{"op": "mul", "path": "state.b", "value": 1e17}]),
            ],
            random_events=[event(f"e{n}", [{"op": "dec", "path": "state.a", "value": 1}]) for n in range(3)],
            **parts,
        ),
    )
    first = Plan(
        [ACT, PlayerAction("big", {})],
        [DieRollRequest("k", 10, "x")],
        [{"op": "inc", "path": "state.a", "value": 1}],
    )
    return play(program, [first, Plan([ACT], seed=99), Plan()])


def lines_of(bundle: bytes) -> list[bytes]:
    """All lines but the end, without theirs."""
    return bundle.splitlines()[:-1]


def forged(bundle: bytes, line: int, change: Callable[[Any], Any]) -> bytes:
    """A bundle with one line changed, and the end of a bundle that was written like that."""
    lines = lines_of(bundle)
    value = engine.parse_canonical(lines[line - 1])
    change(value)
    lines[line - 1] = engine.canonicalize(value)
    return resealed(lines)


def codes(bundle: bytes) -> list[tuple[int, str, str]]:
    return [(d.line, d.finding.code, d.finding.path) for d in verdict_on(bundle).issues]


def test_a_bundle_is_right_when_every_turn_comes_to_what_is_recorded() -> None:
    game = a_game()
    turns, verdict = verified(bundle_of(game))
    assert verdict.is_valid
    assert (verdict.turns, verdict.mismatches) == (3, 0)
    assert [turn.turn for turn in turns] == [1, 2, 3]
    assert all(turn.matches for turn in turns)
    assert verdict.header == game.header()
    assert turns[-1].computed_chain_hash == game.header().chain_hash


def test_a_bundle_has_the_epilogue_of_what_was_dealt_and_no_other() -> None:
    program = engine.compile(DEALT_ENDING)
    for seed in range(4):
        dealt = program.new_state(seed).tree()["hidden"]["x"]
        bundle = bundle_of(play(program, [Plan(), Plan()], seed=seed))
        assert verdict_on(bundle).is_valid
        first, last = lines_of(bundle)[-2:]
        assert (b"epilogue" in first, last.count(f"text {dealt}".encode())) == (False, 2)
        other = {"one": "text two", "two": "text one"}[dealt]

        def forge(turn: Any, other: str = other) -> None:
            turn["events"][-1]["status"]["epilogue"] = other

        assert not verdict_on(forged(bundle, len(lines_of(bundle)), forge)).is_valid


def test_a_session_before_its_first_turn_is_a_bundle() -> None:
    verdict = verdict_on(bundle_of(play(a_game().program, [])))
    assert verdict.is_valid
    assert verdict.turns == 0


def test_a_bundle_tells_who_plays_and_how_it_is_narrated() -> None:
    table = SeatConfig((Seat("s", "x"), Seat("t", "y")), TurnOrder.SIMULTANEOUS, 2.5)
    narrator = NarratorOptions("fake/model", "de")
    verdict = verdict_on(bundle_of(a_game(), table=table, narrator=narrator, next_seed=5))
    assert verdict.is_valid
    assert verdict.header is not None
    assert (verdict.header.table, verdict.header.narrator, verdict.header.next_seed) == (table, narrator, 5)


def test_numbers_that_canonical_form_writes_as_long_integers_stay_what_they_are() -> None:
    game = a_game(state={"a": 10, "b": 2e17, "list": [], "tree": {}})
    assert b'"b":200000000000000000' in bundle_of(game)
    assert verdict_on(bundle_of(game)).is_valid


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("/record/state_hash", lambda turn: turn["record"].update(state_hash="0" * 64)),
        ("/record/changes/0/after", lambda turn: turn["record"]["changes"][0].update(after=12)),
        ("/record/draws/0/value", lambda turn: turn["record"]["draws"][0].update(value="0" * 16)),
        ("/record/more", lambda turn: turn["record"].update(more=True)),
        ("/record/turn", lambda turn: turn["record"].update(turn=2)),
        ("/events/1/changes/0/after", lambda turn: turn["events"][1]["changes"][0].update(after=True)),
        ("/events/3/roll/roll", lambda turn: turn["events"][3]["roll"].update(roll=0)),
        ("/events/4/event_id", lambda turn: turn["events"][4].update(event_id=None)),
        ("/events/6/chain_hash", lambda turn: turn["events"][6].update(chain_hash="0" * 64)),
        ("/events/6/legal_actions", lambda turn: turn["events"][6].update(legal_actions=[])),
        ("/events/6/changes", lambda turn: turn["events"][6].update(changes=[])),
        ("/events", lambda turn: turn["events"].pop(1)),
        ("/events", lambda turn: turn["events"].pop(3)),
    ],
)
def test_the_first_turn_that_differs_is_explained(path: str, change: Callable[[Any], Any]) -> None:
    verdict = verdict_on(forged(bundle_of(a_game()), FIRST_TURN, change))
    assert (verdict.turns, verdict.mismatches) == (3, 1)
    (first, *_) = verdict.issues
    assert (first.line, first.finding.code, first.finding.path) == (FIRST_TURN, "TURN_DIFFERS", path)
    assert {defect.line for defect in verdict.issues} == {FIRST_TURN}


def test_what_differs_is_told_with_both_values() -> None:
    bundle = forged(
        bundle_of(a_game()),
        FIRST_TURN,
        lambda turn: turn["record"]["changes"][0].update(after=5),
    )
    (defect,) = verdict_on(bundle).issues
    assert defect.finding.message == "turn 1: recorded 5, computed 11"
    assert defect.to_violation.field == "line 3/record/changes/0/after"


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["actions"].pop(),
        lambda record: record["actions"].append({"id": "act", "params": {}}),
        lambda record: record["rolls"][0].update(difficulty=11),
        lambda record: record["rolls"].pop(),
        lambda record: record["narrated"][0].update(op="dec"),
        lambda record: record.update(seed=1),
    ],
)
def test_a_turn_that_was_played_otherwise_comes_to_something_else(change: Callable[[Any], Any]) -> None:
    verdict = verdict_on(forged(bundle_of(a_game()), FIRST_TURN, lambda turn: change(turn["record"])))
    assert verdict.mismatches >= 1
    assert verdict.issues[0].line == FIRST_TURN


def test_from_a_turn_that_cannot_be_played_on_nothing_matches() -> None:
    bundle = forged(
        bundle_of(a_game()),
        FIRST_TURN,
        lambda turn: turn["record"]["actions"][0].update(id="none"),
    )
    turns, verdict = verified(bundle)
    assert [(turn.matches, turn.computed_chain_hash) for turn in turns] == [(False, "")] * 3
    assert [(d.line, d.finding.code) for d in verdict.issues] == [(FIRST_TURN, "TURN_NOT_PLAYABLE")]


def test_the_seed_and_the_chain_of_the_header_are_held_to_the_turns() -> None:
    assert codes(forged(bundle_of(a_game()), HEADER, lambda h: h.update(chain_hash="0" * 64))) == [
        (HEADER, "TURN_DIFFERS", "/chain_hash"),
    ]
    assert verdict_on(forged(bundle_of(a_game()), HEADER, lambda h: h.update(first_seed=8))).mismatches == 3


def test_the_specification_is_checked_and_held_to_its_hash() -> None:
    bundle = bundle_of(a_game())
    assert codes(forged(bundle, SPECIFICATION, lambda spec: spec.update(name="Beta"))) == [
        (SPECIFICATION, "OTHER_DOCUMENT", ""),
    ]
    assert codes(forged(bundle, SPECIFICATION, lambda spec: spec.update(more=1))) == [
        (SPECIFICATION, "UNKNOWN_KEY", "/more"),
    ]


def test_a_certificate_is_held_to_its_hash_and_to_the_specification() -> None:
    game = a_game()
    own, other = (encode(certified_alone(spec)) for spec in (game.program.spec, contest()))
    assert verdict_on(bundle_of(game, own, certificate_hash=certificate_hash(own))).is_valid
    assert codes(bundle_of(game, own, certificate_hash="0" * 64)) == [(3, "OTHER_DOCUMENT", "")]
    assert codes(bundle_of(game, other, certificate_hash=certificate_hash(other))) == [
        (3, "OTHER_DOCUMENT", ""),
    ]
    assert codes(bundle_of(game, b"{}", certificate_hash="0" * 64)) == [(3, "CERTIFICATE_INVALID", "")]


@pytest.mark.parametrize(
    ("code", "path", "change"),
    [
        ("MISSING_KEY", "", lambda turn: turn.pop("pov")),
        ("UNKNOWN_KEY", "/more", lambda turn: turn.update(more=1)),
        ("WRONG_TYPE", "/record/actions", lambda turn: turn["record"].update(actions=None)),
        ("WRONG_VALUE", "/events/0/kind", lambda turn: turn["events"][0].update(kind="other")),
        ("WRONG_TYPE", "/events/5/text", lambda turn: turn["events"][5].update(text=1)),
        ("UNKNOWN_KEY", "/events/6/more", lambda turn: turn["events"][6].update(more=1)),
        ("TURN_INVALID", "/events", lambda turn: turn["events"][4].update(more=1)),
        ("TURN_INVALID", "/events", lambda turn: turn["events"].pop()),
        ("TURN_INVALID", "/events", lambda turn: turn["events"].pop(0)),
        ("TURN_INVALID", "/events", lambda turn: turn["events"].insert(0, turn["events"][0])),
    ],
)
def test_a_line_that_is_no_turn_is_refused(code: str, path: str, change: Callable[[Any], Any]) -> None:
    assert codes(forged(bundle_of(a_game()), FIRST_TURN, change)) == [(FIRST_TURN, code, path)]


def test_prose_and_memories_are_carried_and_are_no_part_of_the_chain() -> None:
    def change(turn: Any) -> None:
        turn["events"][5]["text"] = turn["events"][6]["narrative"] = "Otherwise."
        turn["memories"] = [{"turn": 1, "scope": "s", "owner": "x", "content": "c", "visibility": "hidden"}]

    assert verdict_on(forged(bundle_of(a_game()), FIRST_TURN, change)).is_valid
    game = a_game()
    turn = game.turns[0]
    told = (*turn.events[:-1], DialogueSpoken("x", "Words."), turn.events[-1])
    game.turns[0] = type(turn)(
        turn.record,
        turn.request_id,
        "x",
        told,
        (NarratorMemory(1, "s", "x", "c", "private"),),
    )
    assert verdict_on(bundle_of(game)).is_valid


@pytest.mark.parametrize(
    ("code", "first_line"),
    [
        ("NOT_A_BUNDLE", b"{}"),
        ("NOT_A_BUNDLE", b"[]"),
        ("INVALID_JSON", b"no json"),
        ("INVALID_UTF8", b"\xff"),
        ("NOT_CANONICAL", b'{"kind": "peripety.session"}'),
        ("DEEP", b"[" * 100_000),
    ],
)
def test_what_is_no_bundle_is_told_so(code: str, first_line: bytes) -> None:
    verdict = verdict_on(first_line + b"\n")
    assert verdict.header is None
    found = [defect.finding.code for defect in verdict.issues]
    assert found[-1] == "NOT_A_BUNDLE"
    if code != "DEEP":
        assert code in found


@pytest.mark.parametrize("name", ["version", "rng_version", "engine_version"])
def test_a_bundle_of_another_version_is_told_so(name: str) -> None:
    bundle = forged(bundle_of(a_game()), HEADER, lambda header: header.update({name: 2}))
    assert codes(bundle) == [(HEADER, "OTHER_VERSION", f"/{name}")]


def test_a_file_that_ends_early_is_told_so_wherever_it_ends() -> None:
    bundle = bundle_of(a_game())
    ends = {codes(bundle[:length])[0][1] for length in range(1, len(bundle), 41)}
    assert ends <= {"BUNDLE_TRUNCATED", "BUNDLE_CHANGED"}
    assert codes(b"")[0] == (1, "BUNDLE_TRUNCATED", "")
    assert codes(bundle[:-1])[0][1] == "BUNDLE_CHANGED"


def test_lines_that_are_missing_doubled_or_added_are_found() -> None:
    lines = lines_of(bundle_of(a_game()))
    assert codes(resealed(lines[:-1])) == [(5, "BUNDLE_TRUNCATED", "")]
    assert codes(resealed([*lines, lines[-1]])) == [(6, "BUNDLE_CHANGED", "")]
    doubled = forged(
        bundle_of(a_game()),
        4,
        lambda turn: turn.update(request_id=f"{0:08}-0000-0000-0000-{1:012}"),
    )
    assert codes(doubled) == [(4, "TURN_INVALID", "/request_id")]
    assert codes(bundle_of(a_game()) + b"\n") == [(7, "BUNDLE_CHANGED", "")]
    swapped = resealed([*lines[:3], lines[4], lines[3]])
    assert verdict_on(swapped).issues[0].line == 4


def test_no_single_byte_can_be_changed_unnoticed() -> None:
    bundle = bundle_of(a_game())
    for place in range(0, len(bundle), 41):
        changed = bytearray(bundle)
        changed[place] ^= 1
        assert not verdict_on(bytes(changed)).is_valid, place


def test_a_line_without_end_is_not_read_to_its_end() -> None:
    class Endless(io.RawIOBase):
        taken = 0

        def readable(self) -> bool:
            return True

        def readline(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            if self.taken > MAX_LINE_BYTES:
                return b"\n"
            self.taken += size
            return b"a" * size

    verification = BundleVerification(Endless())  # type: ignore[arg-type]
    assert not list(verification.turns())
    assert verification.result.issues[0].finding.code == "LINE_TOO_LONG"


def test_a_bundle_is_read_no_further_than_its_turns_are_played() -> None:
    file = io.BytesIO(bundle_of(a_game()))
    turns = BundleVerification(file).turns()
    next(turns)
    assert file.getvalue()[: file.tell()].count(b"\n") == FIRST_TURN
    next(turns)
    assert file.getvalue()[: file.tell()].count(b"\n") == FIRST_TURN + 1


def test_every_defect_says_the_way_out() -> None:
    bundle = forged(bundle_of(a_game()), FIRST_TURN, lambda turn: turn["record"].update(turn=9))
    assert all(defect.finding.remedy for defect in verdict_on(bundle).issues)
    assert all(defect.finding.remedy for defect in verdict_on(b"{}\n").issues)


def test_the_lines_can_be_read_by_whatever_reads_json() -> None:
    lines = bundle_of(a_game()).splitlines()
    assert [min(json.loads(line)) for line in lines[2:5]] == ["events"] * 3
    assert json.loads(lines[-1])["lines"] == len(lines) - 1
