"""Secret filter: an output guardrail that stops restricted information in prose before it is released.

Threat model. The prompt contains only what the audience may know. A model can therefore reveal a secret of
another entity only by a guess, or because of a defect in a prompt. This filter is the last line of defence
against both. It does not replace the projection of the prompt, and it does not detect paraphrases.

Design:

* The secrets of a turn are the texts and long numbers that are in the state but not in the audience's view,
  in the public rules, or in its own input and earlier narrations.
* Secrets and prose are compared in a normalized form: letters and digits in one case and width. Case,
  spacing and decoration do not matter. The patterns of a secret also include its reversal and the usual
  encodings: rot13, hex, binary, code points, base32 and base64 at each of the three alignments.
* Prose is streamed, so the filter works character by character. It holds back the longest suffix that is a
  prefix of any pattern and releases everything before it. The delay is bounded by the length of one
  pattern.
* The suffix is followed by binary search in the sorted patterns. Multi-pattern libraries (Aho-Corasick)
  were rejected: they report where a match ends, but not how much of a match has begun, which is what must
  be held back.
* After a match nothing more is released. The answer is rejected and repaired once, or the fallback
  narration is used. The secret is not replaced by a mask, as the rest of the sentence could still imply it.
* Short words and numbers count only at the start of a longer word or number, and texts below a minimum
  length never: ordinary prose contains them by chance, and a false alarm costs the reader the narration.

Invariants:

* The released text is a prefix of the fed text, and no pattern lies completely inside it, except for the
  short words and numbers above.
* A fresh copy shares the patterns. Building them walks the whole state, so it happens once per state of a
  turn.
"""

from __future__ import annotations

import base64
import codecs
import re
import unicodedata
from bisect import bisect_left
from collections import deque
from copy import copy
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety.engine import ABSENT
from peripety.scenario.action_tools import PublicScenario
from peripety.session.events import Accepted, ActionResolved, Committed, WorldResolved
from peripety.session.memory import memories_for
from peripety.session.narration.scenario_prompt import public_texts
from peripety.session.visibility import Projector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.session.narration.turn_context import NarrationContext, ScenarioRules


MIN_SECRET_CHARACTERS = 6
"""Minimum length of a secret; shorter texts occur in any prose by chance."""

_MAX_SECRETS = 128
_CACHED_RULES = 64
_CACHED_TEXTS = 1_024
_MAX_WHOLE_CHARACTERS = 48
"""Longer texts are matched by their pieces."""
_PIECE, _STEP, _PIECES = 32, 16, 64
_SEPARATOR = "\0"
_NOT_ALPHANUMERIC = re.compile(r"[^\w\0]|_")


def normalize(text: str) -> str:
    """Reduce a text to its letters and digits in one case and width, so that spacing does not matter."""
    return _NOT_ALPHANUMERIC.sub("", unicodedata.normalize("NFKD", text).casefold())


def list_secret_texts(scene: NarrationContext) -> tuple[list[str], list[str]]:
    """Return the texts that the audience may not know before or after the turn, and those that it knows."""
    known = [*_known_texts(scene), *_iter_rule_texts(scene.spec)]
    return [text for text in dict.fromkeys(_restricted_texts(scene)) if text not in known], known


def collect_secrets(scene: NarrationContext) -> tuple[str, ...]:
    """Return the texts and long numbers that the audience may not know before or after the turn.

    Texts are not secret if they also occur in the audience's view, in the public rules, in earlier narrations
    or in its input. If there are too many, the longest are returned.
    """
    rules = scene.rules
    known = _SEPARATOR.join((normalize(_SEPARATOR.join(_known_texts(scene))), _public_rules_text(rules)))
    unknown = {
        text: said for each in dict.fromkeys(_restricted_texts(scene)) for text, said in _split_pieces(each)
    }
    secrets = (text for text in sorted(unknown, key=len, reverse=True) if unknown[text] not in known)
    return tuple(islice(secrets, _MAX_SECRETS))


@lru_cache(maxsize=_CACHED_TEXTS)
def _split_pieces(text: str) -> tuple[tuple[str, str], ...]:
    """Return a text, or the pieces of a long one, with their normalized forms, without short ones."""
    if len(text) <= _MAX_WHOLE_CHARACTERS:
        pieces = [text]
    else:
        starts = range(0, min(len(text) - _PIECE, _STEP * (_PIECES - 1)) + 1, _STEP)
        pieces = [text[start : start + _PIECE] for start in starts]
    told = ((piece, normalize(piece.replace(_SEPARATOR, ""))) for piece in pieces)
    return tuple((piece, form) for piece, form in told if len(form) >= MIN_SECRET_CHARACTERS)


# --- unknown to the audience ---


def _restricted_texts(scene: NarrationContext) -> Iterator[str]:
    view, played = scene.view, scene.speculation.preview()
    for tree in (scene.speculation.transaction.state.tree(), played.tree):
        yield from _unseen_leaves(tree, view.project_state(tree))
    for change in played.changes:
        (seen,) = view.project_changes([change]) or (None,)
        yield from _unseen_leaves(change.before, ABSENT if seen is None else seen.before)
        yield from _unseen_leaves(change.after, ABSENT if seen is None else seen.after)
    readable = set(memories_for(scene.session.memories, view.viewer))
    yield from (memory.content for memory in scene.session.memories if memory not in readable)


def _unseen_leaves(whole: Any, seen: Any) -> Iterator[str]:
    """Yield the leaves of a value that are missing in its visible part."""
    if isinstance(whole, dict):
        below = seen if isinstance(seen, dict) else {}
        for key, value in whole.items():
            yield from _unseen_leaves(value, below.get(key, ABSENT))
    elif isinstance(whole, list):
        # Restricted items of a list are null in its visible part.
        shown = seen if isinstance(seen, list) else [None] * len(whole)
        for value, item in zip(whole, shown, strict=True):
            yield from _unseen_leaves(value, ABSENT if item is None else item)
    elif seen is ABSENT:
        yield from _leaf_text(whole)


def _leaf_text(leaf: Any) -> Iterator[str]:
    """Yield the text of a recognisable leaf: a string, or a number in decimal notation."""
    if isinstance(leaf, str):
        yield leaf
    elif isinstance(leaf, int | float) and not isinstance(leaf, bool):
        yield f"{leaf:.17g}" if leaf != int(leaf) else str(int(leaf))


# --- known to the audience ---


def _known_texts(scene: NarrationContext) -> Iterator[str]:
    view, played = scene.view, scene.speculation.preview()
    yield scene.input
    for tree in (scene.speculation.transaction.state.tree(), played.tree):
        yield from iter_texts(view.project_state(tree))
    for act in played.actions:
        yield from iter_texts(act.params)
    for change in view.project_changes(played.changes):
        yield from iter_texts([change.before, change.after])
    yield from (line.message for line in played.log)
    yield played.world.status.epilogue or ""
    for turn in scene.recent_turns:
        for happened in turn.events:
            if isinstance(happened, ActionResolved | WorldResolved):
                yield from (line.message for line in happened.log)
        if view.can_read_narration(turn.pov):
            said = (event for event in turn.events if isinstance(event, Accepted | Committed))
            yield from (event.input if isinstance(event, Accepted) else event.narrative for event in said)


@lru_cache(maxsize=_CACHED_RULES)
def _public_rules_text(rules: ScenarioRules) -> str:
    """Return the normalized literals of the public rules."""
    return normalize(_SEPARATOR.join(_iter_rule_texts(rules.spec)))


def _iter_rule_texts(spec: Mapping[str, Any]) -> Iterator[str]:
    public = PublicScenario(spec)
    yield spec["name"]
    yield from public_texts(spec)
    for entity in spec.get("entities", ()):
        yield from iter_texts([entity.get(key) for key in ("id", "name", "kind")])
    for rule in (
        *spec["actions"],
        *spec["random_events"],
        *spec["loss_conditions"],
        *spec.get("win_conditions", ()),
    ):
        condition = rule["preconditions"] if "preconditions" in rule else rule["when"]
        part = public.filter_action({"effects": (), **rule, "preconditions": condition})
        told = ("id", "name", "description", "message", "params")
        yield from iter_texts([part.preconditions, part.effects, part.derives])
        yield from iter_texts({key: rule[key] for key in told if key in rule})


def iter_texts(value: Any) -> Iterator[str]:
    """Yield all texts in a value, including keys and numbers in decimal notation."""
    if isinstance(value, dict):
        yield from value
        yield from _iter_texts_in_each(value.values())
    elif isinstance(value, list | tuple):
        yield from _iter_texts_in_each(value)
    else:
        yield from _leaf_text(value)


def _iter_texts_in_each(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        yield from iter_texts(value)


_ENCODED_PREFIX_CHARACTERS = 12
"""Length of the prefix of a secret that is recognised in an encoding."""
_SHORT_PATTERN_CHARACTERS = 12
"""Shorter words and numbers match only at a word start: longer ones contain them by chance."""
_CACHED_PATTERNS = 16
_CACHED_FORMS = 4_096
_BITS_CHARACTERS = 6

_normalize_character = lru_cache(maxsize=4096)(normalize)


class LeakFilter:
    """Streaming filter of one text, which releases only what cannot be part of a secret.

    Args:
        scene: the turn to narrate in its current state, which is walked once.
    """

    def __init__(self, scene: NarrationContext) -> None:
        self._patterns = _build_patterns(collect_secrets(scene))
        self._reset()

    def _reset(self) -> None:
        self._has_leaked = False
        self._held_back = ""
        self._last_released = ""
        # The longest suffix that is a prefix of a pattern, and the source positions of its characters.
        self._suffix = ""
        self._positions: deque[int] = deque()

    def fresh_copy(self) -> LeakFilter:
        """Return a fresh filter with the same patterns."""
        other = copy(self)
        other._reset()  # noqa: SLF001 - same class
        return other

    @property
    def has_leaked(self) -> bool:
        """True if the text contained a secret; nothing more is released."""
        return self._has_leaked

    def feed(self, text: str) -> str:
        """Feed the next piece of the text; return the text that can be released now."""
        for character in text:
            self._held_back += character
            for folded in _normalize_character(character):
                self._advance(folded)
            if self._has_leaked:
                return ""
        return self._release(self._positions[0] if self._positions else len(self._held_back))

    def finish(self) -> str:
        """End the text; return the rest that was held back."""
        return "" if self._has_leaked else self._release(len(self._held_back))

    def contains_secret(self, *texts: str) -> bool:
        """Return True if other texts contain a secret, individually or joined."""
        other = self.fresh_copy()
        other.feed("\n".join(texts))
        return other.has_leaked

    def _release(self, length: int) -> str:
        released, self._held_back = self._held_back[:length], self._held_back[length:]
        self._last_released = released[-1:] or self._last_released
        self._positions = deque(place - length for place in self._positions if place >= length)
        return released

    def _advance(self, folded: str) -> None:
        self._suffix += folded
        self._positions.append(len(self._held_back) - 1)
        while self._suffix and not self._patterns.has_prefix(self._suffix):
            self._suffix = self._suffix[1:]
            self._positions.popleft()
        if any(map(self._is_significant, self._patterns.find_at_end(self._suffix))):
            self._has_leaked = True

    def _is_significant(self, pattern: str) -> bool:
        """Return True if a match is not just a part of a longer word or number."""
        if len(pattern) >= _SHORT_PATTERN_CHARACTERS or not (pattern.isalpha() or pattern.isdecimal()):
            return True
        place = self._positions[-len(pattern)]
        before = self._held_back[place - 1] if place else self._last_released
        return not before.isdecimal() if pattern.isdecimal() else not before.isalnum()


def find_leaks(scene: NarrationContext, values: Sequence[Any]) -> list[int]:
    """Return the indexes of the values that contain information that is not public.

    The narrator knows what its audience alone may know, but what it writes into the mechanics reaches other
    viewers.
    """
    written = [[text for text in iter_texts(value) if len(text) >= MIN_SECRET_CHARACTERS] for value in values]
    if not any(written):
        return []
    tripwire = LeakFilter(replace(scene, view=Projector(scene.spec).for_viewer(None)))
    return [place for place, texts in enumerate(written) if texts and tripwire.contains_secret(*texts)]


class _PatternIndex:
    """Index of the patterns to search for."""

    def __init__(self, patterns: set[str]) -> None:
        self._sorted = sorted(patterns)
        self._by_end: dict[str, tuple[str, ...]] = {}
        for pattern in self._sorted:
            end = pattern[-MIN_SECRET_CHARACTERS:]
            self._by_end[end] = (*self._by_end.get(end, ()), pattern)

    def has_prefix(self, text: str) -> bool:
        """Return True if a pattern begins with a text."""
        place = bisect_left(self._sorted, text)
        return place < len(self._sorted) and self._sorted[place].startswith(text)

    def find_at_end(self, text: str) -> Iterator[str]:
        """Yield the patterns that a text ends with."""
        return filter(text.endswith, self._by_end.get(text[-MIN_SECRET_CHARACTERS:], ()))


@lru_cache(maxsize=_CACHED_PATTERNS)
def _build_patterns(secrets: tuple[str, ...]) -> _PatternIndex:
    return _PatternIndex({form for secret in secrets for form in _normalized_forms(secret)})


@lru_cache(maxsize=_CACHED_FORMS)
def _normalized_forms(secret: str) -> tuple[str, ...]:
    """Return the normalized spellings of a secret that are long enough to be significant."""
    return tuple(form for form in map(normalize, _spellings(secret)) if len(form) >= MIN_SECRET_CHARACTERS)


def _spellings(secret: str) -> Iterator[str]:
    """Yield the spellings of a secret; case and spacing do not matter."""
    yield secret
    yield normalize(secret)[::-1]
    some = secret[:_ENCODED_PREFIX_CHARACTERS]
    if len(normalize(some)) < MIN_SECRET_CHARACTERS:
        return
    yield codecs.encode(some, "rot13")
    octets = some.encode()
    yield octets.hex()
    yield "".join(f"x{octet:02x}" for octet in octets)
    yield "".join(f"0x{octet:02x}" for octet in octets)
    yield "".join(f"{octet:08b}" for octet in octets[:_BITS_CHARACTERS])
    yield "".join(str(ord(character)) for character in some)
    yield "".join(f"u{ord(character):04x}" for character in some)
    yield base64.b32encode(octets).decode()[: len(octets) * 8 // 5]
    for before in range(3):
        # Neighbouring bytes change the characters that they share with the secret, so those are cut off.
        encoded = base64.b64encode(b"\0" * before + octets).decode()
        yield encoded[-(-before * 8 // 6) : (before + len(octets)) * 8 // 6]
