"""Anthropic's prompt cache: written at breakpoints of the caller, looked up backwards from them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from peripety.simulator.model import ApiError, ErrorKind, Section
from peripety.simulator.truth.cache.visit import Entry, Findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.simulator.model import Block, Prompt
    from peripety.simulator.truth.cache.prefix import Prefixes
    from peripety.simulator.truth.cache.visit import Entries
    from peripety.simulator.truth.models import CacheRules

__all__ = ["look"]

# Adjacent blocks of one of these kinds count as one position.
RUNS = frozenset({"tool_use", "tool_result"})


class Breakpoint(NamedTuple):
    """A breakpoint: its block and its TTL."""

    block: int
    ttl: str


def look(rules: CacheRules, entries: Entries, prefixes: Prefixes, prompt: Prompt, now: float) -> Findings:
    """Return the cache findings for the breakpoints of a prompt.

    Raises:
        ApiError: the breakpoints are not valid.
    """
    cuts = prefixes.ends()
    breakpoints = [
        mark for mark in _breakpoints(rules, prompt.blocks) if cuts[mark.block].tokens >= rules.minimum
    ]
    positions = _positions(prompt.blocks)
    hit = -1
    used: list[Entry] = []
    for mark in breakpoints:
        nearest = positions[mark.block] - rules.positions
        for block in range(mark.block, -1, -1):
            if positions[block] <= nearest:
                break
            life = entries.life(cuts[block].key, now)
            if life is not None:
                used.append(Entry(cuts[block].key, life))
                hit = block  # a later breakpoint never finds a shorter prefix
                break
    read = reached = cuts[hit].tokens if hit >= 0 else 0
    written: dict[str, int] = {}
    kept: list[Entry] = []
    for mark in breakpoints:
        if mark.block > hit:
            cut = cuts[mark.block]
            if cut.tokens > reached:
                written[mark.ttl] = written.get(mark.ttl, 0) + cut.tokens - reached
                reached = cut.tokens
            kept.append(Entry(cut.key, rules.ttls[mark.ttl]))
    return Findings(read=read, written=written, used=tuple(used), at_start=tuple(kept))


def _breakpoints(rules: CacheRules, blocks: Sequence[Block]) -> list[Breakpoint]:
    """Return the breakpoints of a prompt, in order."""
    marks = [Breakpoint(number, block.marker.ttl) for number, block in enumerate(blocks) if block.marker]
    if len(marks) > rules.breakpoints:
        raise _invalid(
            f"A maximum of {rules.breakpoints} blocks with cache_control may be provided. Found {len(marks)}."
        )
    for before, after in pairwise(marks):
        if rules.ttls[after.ttl] > rules.ttls[before.ttl]:
            param = f"{_path(blocks, after.block)}.cache_control.ttl"
            raise _invalid(
                f"{param}: a ttl='{after.ttl}' cache_control block must not come after a ttl='{before.ttl}' "
                "cache_control block. Note that blocks are processed in the following order: `tools`, "
                "`system`, `messages`.",
                param,
            )
    return marks


def _positions(blocks: Sequence[Block]) -> list[int]:
    """Return the position of each block, from 0."""
    found: list[int] = []
    before: Block | None = None
    for block in blocks:
        one_run = before is not None and block.kind in RUNS and block.kind == before.kind
        found.append((found[-1] if found else -1) + (not one_run))
        before = block
    return found


def _path(blocks: Sequence[Block], number: int) -> str:
    """Return the path of a block in the request body."""
    block = blocks[number]
    before = sum(
        1 for other in blocks[:number] if other.section is block.section and other.message == block.message
    )
    if block.section is Section.MESSAGES:
        return f"messages.{block.message}.content.{before}"
    return f"{block.section}.{before}"


def _invalid(message: str, param: str | None = None) -> ApiError:
    return ApiError(ErrorKind.INVALID_REQUEST, message, param=param)
