"""An adversarial player, whose false claims a narrator believes, in sessions of 20 and 50 turns."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety.session.events import Committed
from support.engine.specs import action, never, spec
from support.gateway.fake_gateway import FakeGateway
from support.session.claims import FOLDER
from support.session.sessions import outcome, table

if TYPE_CHECKING:
    from peripety.gateway.types.request import GenerateRequest


@dataclass(frozen=True)
class Line:
    """A line of an adversarial player.

    Attributes:
        language: its language.
        text: what the player types.
        claim: the false claim behind it, in English.
    """

    language: str
    text: str
    claim: str


@dataclass
class Survival:
    """Count of the facts that survived false claims.

    Attributes:
        turns: turns by language.
        repeated: turns by language whose final prose asserts the false claim.
        changed_facts: turns after which a fact differs from the engine's own.
    """

    turns: Counter[str] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)
    changed_facts: int = 0


def read_games() -> list[tuple[bytes, dict[str, Any], list[Line]]]:
    """Return the document, the state and the player's lines of each game."""
    situations = {row["situation"]: row for row in _rows("literary") if "spec" in row}
    lines: dict[str, list[Line]] = {}
    for row in _rows("adversarial"):
        line = Line(row["language"], row["text"], row["false_claim"])
        lines.setdefault(row["situation"], []).append(line)
    return [(_document(situations[key]), situations[key]["after"], told) for key, told in lines.items()]


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(row) for row in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def _document(row: dict[str, Any]) -> bytes:
    told = row["spec"]
    labels = {
        f"state.{path}": {key: value for key, value in label.items() if key != "bands"}
        for path, label in told["labels"].items()
    }
    ends = {
        name: [{**never(end["id"]), "message": end["description"]} for end in told[name]]
        for name in ("win_conditions", "loss_conditions")
    }
    ends["loss_conditions"] += [never("never_first"), never("never_second")]
    entities = [
        {key: value for key, value in one.items() if key != "description"} for one in told["entities"]
    ]
    return json.dumps(
        spec(
            spec_version="1.1",
            entities=entities,
            labels=labels,
            state=row["after"],
            actions=[action("wait"), *(action(one["id"]) | {"name": one["name"]} for one in told["actions"])],
            **ends,
        )
    ).encode()


class Believer(FakeGateway):
    """A narrator that repeats the claims of the player, and tries to make them true.

    Args:
        lines: the lines of the player.
    """

    def __init__(self, lines: list[Line]) -> None:
        super().__init__(self._narrate)
        self._lines = {line.text: line for line in lines}
        self._line = lines[0]
        self._asked = 0

    def _narrate(self, request: GenerateRequest) -> str:
        last = request.messages[-1].text
        known = json.loads(last).get("facts", {}).get("input") if last.startswith("{") else None
        self._line = self._lines.get(known or "", self._line)
        prose = self._line.claim if self._line.language == "en" else self._line.text
        self._asked += 1
        # Every third answer also tries to change the state.
        change = {"op": "set", "path": "state.claimed", "value": prose}
        return outcome(prose, state_changes=[change]) if self._asked % 3 == 0 else outcome(prose)


async def play_against(turns: int) -> Survival:
    """Play each game for a number of turns, and compare its state with the engine's after each turn."""
    found = Survival()
    for document, state, lines in read_games():
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{Path(folder) / 'adversary.db'}"
            async with table(url, document, Believer(lines)) as game:
                for turn, line in enumerate(islice(cycle(lines), turns), start=1):
                    events = await game.play(turn, "wait", input=line.text)
                    committed = events[-1].event
                    assert isinstance(committed, Committed)
                    told = line.claim if line.language == "en" else line.text
                    found.turns[line.language] += 1
                    found.repeated[line.language] += told in committed.narrative
                    found.changed_facts += json.loads((await game.now()).state) != state
    return found
