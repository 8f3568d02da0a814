"""OpenAI's prompt cache from GPT-5.6 on: entries at breakpoints of the provider and of the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.model import ApiError, ErrorKind
from peripety.simulator.truth.cache.visit import Entry, Findings

if TYPE_CHECKING:
    from peripety.simulator.model import Prompt
    from peripety.simulator.truth.cache.prefix import Prefixes
    from peripety.simulator.truth.cache.visit import Entries
    from peripety.simulator.truth.models import CacheRules

__all__ = ["look"]


def look(rules: CacheRules, entries: Entries, prefixes: Prefixes, prompt: Prompt, now: float) -> Findings:
    """Return the cache findings at the breakpoints of a prompt.

    Raises:
        ApiError: the cache controls are not valid.
    """
    options = _options(rules, prompt)
    blocks = prompt.blocks
    default = options.get("ttl") or rules.default_ttl
    explicit = [
        (number, _ttl(rules, block.marker.ttl or default, number))
        for number, block in enumerate(blocks)
        if block.marker
    ]
    if prompt.tokens < rules.minimum:
        return Findings()
    cuts = prefixes.ends()
    if options.get("mode", "implicit") == "explicit":
        writing = explicit[-rules.breakpoints :]
        looked_up = {number for number, _ in explicit}
    else:
        # The provider's breakpoint is at the end of the newest message. Its earlier breakpoints are at the
        # ends of messages that were once the newest.
        writing = [*explicit[-(rules.breakpoints - 1) :], (len(blocks) - 1, default)] if blocks else []
        looked_up = {number for number, _ in explicit} | {
            number
            for number, block in enumerate(blocks)
            if number + 1 == len(blocks) or blocks[number + 1].message != block.message
        }
    candidates = [
        cuts[number]
        for number in sorted(looked_up)[-rules.candidates :]
        if cuts[number].tokens >= rules.minimum
    ]
    read, hit = 0, -1
    used: list[Entry] = []
    for cut in reversed(candidates):
        life = entries.life(cut.key, now)
        if life is not None:
            read, hit = cut.tokens, cut.block
            used.append(Entry(cut.key, life))
            break
    reached = read
    written: dict[str, int] = {}
    kept: list[Entry] = []
    for number, ttl in writing:
        cut = cuts[number]
        if number > hit and cut.tokens >= rules.minimum:
            if cut.tokens > reached:
                written[ttl] = written.get(ttl, 0) + cut.tokens - reached
                reached = cut.tokens
            kept.append(Entry(cut.key, rules.ttls[ttl]))
    return Findings(read=read, written=written, used=tuple(used), at_end=(*used, *kept))


def _options(rules: CacheRules, prompt: Prompt) -> dict[str, Any]:
    options = prompt.controls.get("prompt_cache_options")
    if options is None:
        return {}
    if prompt.controls.get("prompt_cache_retention") is not None:
        message = (
            "prompt_cache_retention and prompt_cache_options cannot be used together; "
            "use prompt_cache_options.ttl alone."
        )
        raise ApiError(ErrorKind.INVALID_REQUEST, message, param="prompt_cache_retention")
    if options.get("ttl"):
        _ttl(rules, options["ttl"], None)
    return dict(options)


def _ttl(rules: CacheRules, ttl: str, block: int | None) -> str:
    if ttl not in rules.ttls:
        param = "prompt_cache_options.ttl" if block is None else "prompt_cache_breakpoint.ttl"
        message = f"Invalid value: '{ttl}'. Supported values are: {', '.join(map(repr, rules.ttls))}."
        raise ApiError(ErrorKind.INVALID_REQUEST, message, param=param, code="invalid_value")
    return ttl
