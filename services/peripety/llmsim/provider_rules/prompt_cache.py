"""Prompt caches of all providers, each with its own rules.

- Anthropic: written at breakpoints of the caller, looked up backwards from them.
- DeepSeek: whole units on disk, stored at request ends, at branch points and at intervals.
- Gemini: explicit contents, stored under a name until they expire; and an automatic cache with token steps.
- OpenAI before GPT-5.6: an automatic prefix cache with token steps.
- OpenAI from GPT-5.6 on: entries at breakpoints of the provider and of the caller.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from peripety.llmsim.provider_rules.cache_entries import (
    CacheFindings,
    PromptPrefixes,
    SimCacheEntries,
    SimCacheEntry,
    SimCacheVisit,
)
from peripety.llmsim.provider_rules.models import CacheFamily
from peripety.llmsim.types import ApiError, ApiErrorKind, CacheSection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.llmsim.provider_rules.models import SimCacheRules, SimModel
    from peripety.llmsim.state import StateTable
    from peripety.llmsim.types import SimBlock, SimPrompt


# Adjacent blocks of one of these kinds count as one position.
RUN_KINDS = frozenset({"tool_use", "tool_result"})


class PlacedBreakpoint(NamedTuple):
    """A breakpoint: its block and its TTL."""

    block: int
    ttl: str


def lookup_anthropic(
    rules: SimCacheRules,
    entries: SimCacheEntries,
    prefixes: PromptPrefixes,
    prompt: SimPrompt,
    now: float,
) -> CacheFindings:
    """Return the cache findings for the breakpoints of a prompt.

    Raises:
        ApiError: the breakpoints are not valid.
    """
    cuts = prefixes.block_ends()
    breakpoints = [
        mark for mark in _find_breakpoints(rules, prompt.blocks) if cuts[mark.block].tokens >= rules.minimum
    ]
    positions = _block_positions(prompt.blocks)
    hit = -1
    used: list[SimCacheEntry] = []
    for mark in breakpoints:
        nearest = positions[mark.block] - rules.positions
        for block in range(mark.block, -1, -1):
            if positions[block] <= nearest:
                break
            life = entries.lifetime(cuts[block].key, now)
            if life is not None:
                used.append(SimCacheEntry(cuts[block].key, life))
                hit = block  # a later breakpoint never finds a shorter prefix
                break
    read = reached = cuts[hit].tokens if hit >= 0 else 0
    written: dict[str, int] = {}
    kept: list[SimCacheEntry] = []
    for mark in breakpoints:
        if mark.block > hit:
            cut = cuts[mark.block]
            if cut.tokens > reached:
                written[mark.ttl] = written.get(mark.ttl, 0) + cut.tokens - reached
                reached = cut.tokens
            kept.append(SimCacheEntry(cut.key, rules.ttls[mark.ttl]))
    return CacheFindings(read=read, written=written, used=tuple(used), at_start=tuple(kept))


def _find_breakpoints(rules: SimCacheRules, blocks: Sequence[SimBlock]) -> list[PlacedBreakpoint]:
    """Return the breakpoints of a prompt, in order."""
    marks = [
        PlacedBreakpoint(number, block.marker.ttl) for number, block in enumerate(blocks) if block.marker
    ]
    if len(marks) > rules.breakpoints:
        raise _invalid_breakpoint(
            f"A maximum of {rules.breakpoints} blocks with cache_control may be provided. "
            f"Found {len(marks)}.",
        )
    for before, after in pairwise(marks):
        if rules.ttls[after.ttl] > rules.ttls[before.ttl]:
            param = f"{_block_path(blocks, after.block)}.cache_control.ttl"
            raise _invalid_breakpoint(
                f"{param}: a ttl='{after.ttl}' cache_control block must not come after a ttl='{before.ttl}' "
                "cache_control block. Note that blocks are processed in the following order: `tools`, "
                "`system`, `messages`.",
                param,
            )
    return marks


def _block_positions(blocks: Sequence[SimBlock]) -> list[int]:
    """Return the position of each block, from 0."""
    found: list[int] = []
    before: SimBlock | None = None
    for block in blocks:
        one_run = before is not None and block.kind in RUN_KINDS and block.kind == before.kind
        found.append((found[-1] if found else -1) + (not one_run))
        before = block
    return found


def _block_path(blocks: Sequence[SimBlock], number: int) -> str:
    """Return the path of a block in the request body."""
    block = blocks[number]
    before = sum(
        1 for other in blocks[:number] if other.section is block.section and other.message == block.message
    )
    if block.section is CacheSection.MESSAGES:
        return f"messages.{block.message}.content.{before}"
    return f"{block.section}.{before}"


def _invalid_breakpoint(message: str, param: str | None = None) -> ApiError:
    return ApiError(ApiErrorKind.INVALID_REQUEST, message, param=param)


# Default lifetime of stored contents, in seconds.
DEFAULT_CONTENT_TTL = 3600


@dataclass(frozen=True, slots=True)
class CachedContent:
    """Stored contents.

    Attributes:
        name: `cachedContents/` and an id.
        owner: the fingerprint of the key that stored them; other keys cannot see them.
        model: the only model that can use them.
        tokens: number of input tokens.
        created: the time of creation, in seconds since 1970.
        updated: the time of the last change.
        expires: the expiry time.
        value: the stored JSON value.
    """

    name: str
    owner: str
    model: str
    tokens: int
    created: float
    updated: float
    expires: float
    value: Any


class CachedContents:
    """All stored contents.

    Args:
        table: the storage.
    """

    def __init__(self, table: StateTable) -> None:
        self._table = table

    def put(self, content: CachedContent) -> None:
        """Store contents, or update their expiry time."""
        self._table.put(content.name, asdict(content))

    def get(self, name: str, owner: str, now: float) -> CachedContent:
        """Return contents by name.

        Raises:
            ApiError: they do not exist, have expired, or belong to another key.
        """
        row = self._table.get(name)
        if row is None or row["owner"] != owner or row["expires"] <= now:
            raise ApiError(ApiErrorKind.PERMISSION, "CachedContent not found (or permission denied)")
        return CachedContent(**row)

    def list_for_owner(self, owner: str, now: float) -> list[CachedContent]:
        """Return the contents of a key, latest first."""
        rows = [CachedContent(**self._table.get(name)) for name in list(self._table)]
        mine = [content for content in rows if content.owner == owner and now < content.expires]
        return sorted(mine, key=lambda content: (-content.created, content.name))

    def set_expiry(self, name: str, owner: str, now: float, *, expires: float) -> CachedContent:
        """Change the expiry time of contents.

        Raises:
            ApiError: they do not exist.
        """
        changed = replace(self.get(name, owner, now), updated=now, expires=expires)
        self.put(changed)
        return changed

    def delete(self, name: str, owner: str, now: float) -> None:
        """Delete contents.

        Raises:
            ApiError: they do not exist.
        """
        self.get(name, owner, now)
        self._table.put(name, None)


# A prefix that was sent before but is not a unit marks a branch point.
SEEN_PREFIX = "seen "


def lookup_deepseek(
    rules: SimCacheRules,
    entries: SimCacheEntries,
    prefixes: PromptPrefixes,
    now: float,
) -> CacheFindings:
    """Return the cache findings of a prompt: the longest unit that is a prefix of it."""
    seconds = rules.ttls[rules.default_ttl]
    cuts = prefixes.all_prefixes(rules.step)
    hit = next((cut for cut in reversed(cuts) if entries.lifetime(cut.key, now)), None)
    common = next((cut for cut in reversed(cuts) if entries.lifetime(SEEN_PREFIX + cut.key, now)), None)
    units = {cuts[-1].key} if cuts else set()
    units.update(cut.key for cut in cuts if cut.tokens % rules.interval == 0 and cut.tokens)
    if common:
        units.add(common.key)

    def after(answer: Sequence[SimBlock]) -> SimCacheEntry:
        return SimCacheEntry(prefixes.key_with_blocks(answer), seconds)

    return CacheFindings(
        read=hit.tokens if hit else 0,
        used=(SimCacheEntry(hit.key, seconds),) if hit else (),
        at_end=(
            *(SimCacheEntry(key, seconds) for key in sorted(units)),
            *(SimCacheEntry(SEEN_PREFIX + cut.key, seconds) for cut in cuts),
        ),
        after_answer=after,
    )


def lookup_openai(
    rules: SimCacheRules,
    entries: SimCacheEntries,
    prefixes: PromptPrefixes,
    prompt: SimPrompt,
    now: float,
) -> CacheFindings:
    """Return the cache findings at the breakpoints of a prompt.

    Raises:
        ApiError: the cache controls are not valid.
    """
    options = _read_options(rules, prompt)
    blocks = prompt.blocks
    default = options.get("ttl") or rules.default_ttl
    explicit = [
        (number, _check_ttl(rules, block.marker.ttl or default, number))
        for number, block in enumerate(blocks)
        if block.marker
    ]
    if prompt.tokens < rules.minimum:
        return CacheFindings()
    cuts = prefixes.block_ends()
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
    used: list[SimCacheEntry] = []
    for cut in reversed(candidates):
        life = entries.lifetime(cut.key, now)
        if life is not None:
            read, hit = cut.tokens, cut.block
            used.append(SimCacheEntry(cut.key, life))
            break
    reached = read
    written: dict[str, int] = {}
    kept: list[SimCacheEntry] = []
    for number, ttl in writing:
        cut = cuts[number]
        if number > hit and cut.tokens >= rules.minimum:
            if cut.tokens > reached:
                written[ttl] = written.get(ttl, 0) + cut.tokens - reached
                reached = cut.tokens
            kept.append(SimCacheEntry(cut.key, rules.ttls[ttl]))
    return CacheFindings(read=read, written=written, used=tuple(used), at_end=(*used, *kept))


def _read_options(rules: SimCacheRules, prompt: SimPrompt) -> dict[str, Any]:
    options = prompt.controls.get("prompt_cache_options")
    if options is None:
        return {}
    if prompt.controls.get("prompt_cache_retention") is not None:
        message = (
            "prompt_cache_retention and prompt_cache_options cannot be used together; "
            "use prompt_cache_options.ttl alone."
        )
        raise ApiError(ApiErrorKind.INVALID_REQUEST, message, param="prompt_cache_retention")
    if options.get("ttl"):
        _check_ttl(rules, options["ttl"], None)
    return dict(options)


def _check_ttl(rules: SimCacheRules, ttl: str, block: int | None) -> str:
    if ttl not in rules.ttls:
        param = "prompt_cache_options.ttl" if block is None else "prompt_cache_breakpoint.ttl"
        message = f"Invalid value: '{ttl}'. Supported values are: {', '.join(map(repr, rules.ttls))}."
        raise ApiError(ApiErrorKind.INVALID_REQUEST, message, param=param, code="invalid_value")
    return ttl


def lookup_stepped(
    rules: SimCacheRules,
    entries: SimCacheEntries,
    prefixes: PromptPrefixes,
    ttl: str,
    now: float,
) -> CacheFindings:
    """Return the cache findings of a prompt: its longest prefix, in whole steps, of any earlier prompt."""
    cuts = [cut for cut in prefixes.at_steps(rules.step) if cut.tokens >= rules.minimum]
    found = next(
        (number for number in range(len(cuts), 0, -1) if entries.lifetime(cuts[number - 1].key, now)),
        0,
    )
    seconds = rules.ttls[ttl]
    return CacheFindings(
        read=cuts[found - 1].tokens if found else 0,
        used=tuple(SimCacheEntry(cut.key, seconds) for cut in cuts[:found]),
        at_end=tuple(SimCacheEntry(cut.key, seconds) for cut in cuts),
    )


# The beginning of the prompt determines the machine of a request.
ROUTED_TOKENS = 256


class SimPromptCaches:
    """Cache entries of all keys and models.

    Args:
        table: the storage.
        contents: Gemini's explicit caches.
    """

    def __init__(self, table: StateTable, contents: StateTable) -> None:
        self._entries = SimCacheEntries(table)
        self._contents = CachedContents(contents)

    def begin_visit(self, model: SimModel, scope: str, prompt: SimPrompt, now: float) -> SimCacheVisit:
        """Look up a prompt. Nothing changes before the callbacks of the visit.

        Args:
            model: the data of the model.
            scope: the owner of the cache: the fingerprint of a key.
            prompt: the prompt.
            now: the time of the request.

        Raises:
            ApiError: the cache controls of the prompt are not valid.
        """
        name = prompt.controls.get("cachedContent")
        if name is None:
            findings = self._lookup(model, scope, prompt, now)
        else:
            findings = self._lookup_explicit(model, scope, name, prompt.tokens, now)
        return SimCacheVisit(self._entries, findings, prompt.tokens, now)

    def _lookup(self, model: SimModel, scope: str, prompt: SimPrompt, now: float) -> CacheFindings:
        rules, entries = model.cache, self._entries
        whose = (rules.family, model.name, scope)
        match rules.family:
            case CacheFamily.ANTHROPIC:
                return lookup_anthropic(rules, entries, PromptPrefixes(whose, prompt), prompt, now)
            case CacheFamily.OPENAI_BREAKPOINTS:
                return lookup_openai(rules, entries, PromptPrefixes(whose, prompt, whole=True), prompt, now)
            case CacheFamily.OPENAI_AUTOMATIC:
                return self._lookup_automatic(rules, whose, prompt, now)
            case CacheFamily.DEEPSEEK:
                user = str(prompt.controls.get("user_id") or "")
                prefixes = PromptPrefixes((*whose, user), prompt, whole=True)
                return lookup_deepseek(rules, entries, prefixes, now)
            case CacheFamily.GEMINI:
                return lookup_stepped(
                    rules,
                    entries,
                    PromptPrefixes(whose, prompt, whole=True),
                    rules.default_ttl,
                    now,
                )
            case CacheFamily.NONE:
                return CacheFindings()

    def _lookup_explicit(
        self,
        model: SimModel,
        scope: str,
        name: str,
        tokens: int,
        now: float,
    ) -> CacheFindings:
        """Look up a Gemini prompt that starts with stored contents."""
        content = self._contents.get(name, scope, now)
        if content.model != model.name:
            message = (
                f"Model used by GenerateContent request (models/{model.name}) and CachedContent "
                f"(models/{content.model}) has to be the same."
            )
            raise ApiError(ApiErrorKind.INVALID_REQUEST, message, param="cachedContent")
        return CacheFindings(read=min(content.tokens, tokens))

    def _lookup_automatic(
        self,
        rules: SimCacheRules,
        whose: tuple[str, ...],
        prompt: SimPrompt,
        now: float,
    ) -> CacheFindings:
        """Look up a prompt for OpenAI models before GPT-5.6, on the machine of its kind."""
        retention = str(prompt.controls.get("prompt_cache_retention"))
        ttl = retention if retention in rules.ttls else rules.default_ttl
        key = str(prompt.controls.get("prompt_cache_key") or "")
        if prompt.tokens < rules.minimum:
            return CacheFindings()
        kind = next(PromptPrefixes((*whose, key), prompt, whole=True).at_steps(ROUTED_TOKENS)).key
        machine = str(self._entries.request_count(kind, now) // rules.spill)
        prefixes = PromptPrefixes((*whose, key, machine), prompt, whole=True)
        return replace(lookup_stepped(rules, self._entries, prefixes, ttl, now), counted=kind)
