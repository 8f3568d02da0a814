"""The compiled form of stored scenarios: one for each version, and no more than were used last."""

from __future__ import annotations

import asyncio

from peripety.scenario.registry import ProgramCache
from support.engine.specs import chance, program

FIRST, SECOND, THIRD = (program({**chance(0.5), "seed": seed}) for seed in range(3))


async def test_a_version_is_compiled_once() -> None:
    programs = ProgramCache()
    assert programs.get(FIRST.spec_hash) is None
    made = await programs.load(FIRST.spec_hash, FIRST.document)
    assert made.document == FIRST.document
    assert await programs.load(FIRST.spec_hash, b"is not looked at") is made
    assert programs.put(FIRST) is made


async def test_those_who_ask_at_once_get_the_same_one() -> None:
    programs = ProgramCache()
    made = await asyncio.gather(*(programs.load(FIRST.spec_hash, FIRST.document) for _ in range(4)))
    assert {id(program) for program in made} == {id(programs.get(FIRST.spec_hash))}


async def test_what_was_used_longest_ago_makes_room() -> None:
    programs = ProgramCache(most=2)
    for compiled in (FIRST, SECOND):
        programs.put(compiled)
    assert await programs.load(FIRST.spec_hash, FIRST.document) is FIRST
    programs.put(THIRD)
    kept = [programs.get(compiled.spec_hash) is compiled for compiled in (FIRST, SECOND, THIRD)]
    assert kept == [True, False, True]
