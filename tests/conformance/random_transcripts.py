"""Random transcripts, recorded as the golden ones are, for the verifiers of all clients.

`make test-transcripts` writes them to `build/transcripts`, beside copies of the golden ones, and lets every
client verify that folder. The sessions depend on the seed alone.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
from random import Random
from typing import TYPE_CHECKING

from conformance.transcripts import GOLDEN_FOLDER
from peripety import engine
from peripety.scenario.spec_generator.generator import generate_spec
from support.repo.repository import ROOT
from support.session.transcripts import Recorder, Transcript, entry_of, record

if TYPE_CHECKING:
    from support.engine.specs import Json

FOLDER = ROOT / "build" / "transcripts"
MOST_TURNS = 20


def main(count: int, seed: int) -> None:
    """Record sessions, and write their index."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.copytree(GOLDEN_FOLDER, FOLDER)
    index = json.loads((FOLDER / "index.json").read_text("utf-8"))
    for number in range(count):
        with tempfile.TemporaryDirectory() as folder:
            transcript = asyncio.run(_record(seed, number, f"sqlite:///{folder}/random.db"))
        name = f"random_{number:04}.jsonl"
        (FOLDER / name).write_bytes(transcript.bundle)
        index[name] = entry_of(transcript)
    (FOLDER / "index.json").write_text(json.dumps(index), "utf-8")
    recorded = [entry for name, entry in index.items() if name.startswith("random_")]
    turns, tampered = (sum(part) for part in zip(*map(_size, recorded), strict=True))
    sys.stdout.write(f"{count} random sessions of {turns} turns, {tampered} false variants\n")


def _size(entry: Json) -> tuple[int, int]:
    return entry["turns"], len(entry["tampered"])


async def _record(seed: int, number: int, database_url: str) -> Transcript:
    document = generate_spec(seed, number, with_story=number % 2 == 1)
    random = Random(f"{seed} {number}")

    async def course(game: Recorder) -> None:
        await game.start(seed=number)
        await game.play_at_random(random, engine.loads(document), random.randint(0, MOST_TURNS))

    return await record(document, course, database_url)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
