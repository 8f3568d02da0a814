"""Anthropic's prompt cache: kept where the caller marks the prompt, and looked for before the marks."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from peripety.simulator.model import ApiError, ErrorKind, Marker, Section
from peripety.simulator.truth.cache.visit import Entry, Findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.simulator.model import Block, Prompt
    from peripety.simulator.truth.cache.prefix import Prefixes
    from peripety.simulator.truth.cache.visit import Entries
    from peripety.simulator.truth.models import CacheRules

__all__ = ["look", "marked"]

# Blocks that may not carry a marker, wherever they stand.
UNMARKABLE = frozenset({"thinking", "redacted_thinking"})
# Neighbours of one of these kinds are one position together.
RUNS = frozenset({"tool_use", "tool_result"})


class Breakpoint(NamedTuple):
    """A mark: the block it is on, and its TTL."""

    block: int
    ttl: str


def look(rules: CacheRules, entries: Entries, prefixes: Prefixes, prompt: Prompt, now: float) -> Findings:
    """What is found for the marks of a prompt.

    Raises:
        ApiError: the marks are not valid.
    """
    cuts = prefixes.ends()
    breakpoints = [mark for mark in marked(rules, prompt) if cuts[mark.block].tokens >= rules.minimum]
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
                hit = max(hit, block)
                break
    read = reached = cuts[hit].tokens if hit >= 0 else 0
    written: dict[str, int] = {}
    kept: list[Entry] = []
    for mark in breakpoints:
        if mark.block > hit:
            cut = cuts[mark.block]
            written[mark.ttl] = written.get(mark.ttl, 0) + cut.tokens - reached
            reached = cut.tokens
            kept.append(Entry(cut.key, rules.ttls[mark.ttl]))
    return Findings(read=read, written=written, used=tuple(used), at_start=tuple(kept))


def marked(rules: CacheRules, prompt: Prompt) -> list[Breakpoint]:
    """The marks of a prompt, in its order: the caller's own, and the automatic one.

    Raises:
        ApiError: they are not valid.
    """
    explicit = {number: block.marker for number, block in enumerate(prompt.blocks) if block.marker}
    for number in explicit:
        _check_block(prompt, number)
    count = len(explicit)
    marks = {number: marker.ttl for number, marker in explicit.items()}
    control = prompt.controls.get("cache_control")
    if control is not None:
        automatic = Marker(control.get("ttl") or rules.default_ttl, automatic=True)
        last = _last_markable(prompt.blocks)
        own = explicit.get(last)
        if own is None:
            count += 1
        elif own.ttl != automatic.ttl:
            message = (
                f"cache_control: the last block is marked with ttl='{own.ttl}' already, and cannot be cached "
                f"automatically with ttl='{automatic.ttl}'; give both the same ttl, or remove one of them."
            )
            raise _invalid(message, "cache_control")
        if last >= 0:
            marks[last] = automatic.ttl
    if count > rules.breakpoints:
        message = (
            f"A maximum of {rules.breakpoints} blocks with cache_control may be provided. Found {count}."
        )
        raise _invalid(message, None)
    ordered = [Breakpoint(number, marks[number]) for number in sorted(marks)]
    for before, after in pairwise(ordered):
        if rules.ttls[after.ttl] > rules.ttls[before.ttl]:
            param = f"{_path(prompt.blocks, after.block)}.cache_control.ttl"
            message = (
                f"{param}: a ttl='{after.ttl}' cache_control block must not come after a ttl='{before.ttl}' "
                "cache_control block. Note that blocks are processed in the following order: `tools`, "
                "`system`, `messages`."
            )
            raise _invalid(message, param)
    return ordered


def _check_block(prompt: Prompt, number: int) -> None:
    block = prompt.blocks[number]
    if block.kind in UNMARKABLE:
        param = f"{_path(prompt.blocks, number)}.{block.kind}.cache_control"
        raise _invalid(f"{param}: Extra inputs are not permitted", param)
    if _is_empty(block):
        param = f"{_path(prompt.blocks, number)}.text"
        raise _invalid(f"{param}: cache_control cannot be set for empty text blocks", param)


def _last_markable(blocks: Sequence[Block]) -> int:
    for number in range(len(blocks) - 1, -1, -1):
        if blocks[number].kind not in UNMARKABLE and not _is_empty(blocks[number]):
            return number
    return -1


def _is_empty(block: Block) -> bool:
    return block.kind == "text" and not json.loads(block.content)["text"]


def _positions(blocks: Sequence[Block]) -> list[int]:
    """The position of each block, counted from 0."""
    found: list[int] = []
    before: Block | None = None
    for block in blocks:
        one_run = before is not None and block.kind in RUNS and block.kind == before.kind
        found.append((found[-1] if found else -1) + (not one_run))
        before = block
    return found


def _path(blocks: Sequence[Block], number: int) -> str:
    """Where a block stands in the body of a request."""
    block = blocks[number]
    before = sum(
        1 for other in blocks[:number] if other.section is block.section and other.message == block.message
    )
    if block.section is Section.MESSAGES:
        return f"messages.{block.message}.content.{before}"
    return f"{block.section}.{before}"


def _invalid(message: str, param: str | None) -> ApiError:
    return ApiError(ErrorKind.INVALID_REQUEST, message, param=param)
