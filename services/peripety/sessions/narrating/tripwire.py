"""Leak filter: an output guardrail that stops restricted information in prose before it is released.

Threat model. The prompt contains only what the audience may know. A model can therefore reveal a secret of
another entity only by a guess, or because of a defect in a prompt. This filter is the last line of defence
against both. It does not replace the projection of the prompt, and it does not detect paraphrases.

Design:

* The secrets of a turn are the texts and long numbers that are in the state but not in the audience's view,
  in the public rules, or in its own input and earlier narrations.
* Secrets and prose are compared in a normalized form: letters and digits in one case and width. Case, spacing
  and decoration do not matter. The patterns of a secret also include its reversal and the usual encodings:
  rot13, hex, binary, code points, base32 and base64 at each of the three alignments.
* Prose is streamed, so the filter works character by character. It holds back the longest suffix that is a
  prefix of any pattern and releases everything before it. The delay is bounded by the length of one pattern.
* The suffix is followed by binary search in the sorted patterns. Multi-pattern libraries (Aho-Corasick) were
  rejected: they report where a match ends, but not how much of a match has begun, which is what must be held
  back.
* After a match nothing more is released. The answer is rejected and repaired once, or the fallback narration
  is used. The secret is not replaced by a mask, as the rest of the sentence could still imply it.
* Short words and numbers count only at the start of a longer word or number, and texts below a minimum length
  never: ordinary prose contains them by chance, and a false alarm costs the reader the narration.

Invariants:

* The released text is a prefix of the fed text, and no pattern lies completely inside it, except for the
  short words and numbers above.
* A fresh copy shares the patterns. Building them walks the whole state, so it happens once per state of a
  turn.
"""

from __future__ import annotations

import base64
import codecs
from bisect import bisect_left
from collections import deque
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from peripety.sessions.narrating.secrets import LEAST_CHARACTERS, secrets_of, squeezed, texts_in
from peripety.sessions.visibility import Viewers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.sessions.narrating.scene import Scene

__all__ = ["Tripwire", "revealing"]

_ENCODED_CHARACTERS = 12
"""Length of the prefix of a secret that is recognised in an encoding."""
_SHORT = 12
"""Shorter words and numbers match only at a word start: longer ones contain them by chance."""
_KEPT_PATTERNS = 16
_KEPT_FORMS = 4_096
_BITS_CHARACTERS = 6

_folded = lru_cache(maxsize=4096)(squeezed)


class Tripwire:
    """Streaming filter of one text, which releases only what cannot be part of a secret.

    Args:
        scene: the turn to narrate in its current state, which is walked once.
    """

    def __init__(self, scene: Scene) -> None:
        self._patterns = _patterns(secrets_of(scene))
        self._begin()

    def _begin(self) -> None:
        self._leaked = False
        self._held = ""
        self._last = ""
        # The longest suffix that is a prefix of a pattern, and the source positions of its characters.
        self._end = ""
        self._places: deque[int] = deque()

    def anew(self) -> Tripwire:
        """Return a fresh filter with the same patterns."""
        other = copy(self)
        other._begin()  # noqa: SLF001 - same class
        return other

    @property
    def leaked(self) -> bool:
        """True if the text contained a secret; nothing more is released."""
        return self._leaked

    def feed(self, text: str) -> str:
        """Feed the next piece of the text; return the text that can be released now."""
        for character in text:
            self._held += character
            for folded in _folded(character):
                self._follow(folded)
            if self._leaked:
                return ""
        return self._release(self._places[0] if self._places else len(self._held))

    def finish(self) -> str:
        """End the text; return the rest that was held back."""
        return "" if self._leaked else self._release(len(self._held))

    def leaks(self, *texts: str) -> bool:
        """Return True if other texts contain a secret, individually or joined."""
        other = self.anew()
        other.feed("\n".join(texts))
        return other.leaked

    def _release(self, length: int) -> str:
        released, self._held = self._held[:length], self._held[length:]
        self._last = released[-1:] or self._last
        self._places = deque(place - length for place in self._places if place >= length)
        return released

    def _follow(self, folded: str) -> None:
        self._end += folded
        self._places.append(len(self._held) - 1)
        while self._end and not self._patterns.begin_with(self._end):
            self._end = self._end[1:]
            self._places.popleft()
        if any(map(self._counts, self._patterns.at_end_of(self._end))):
            self._leaked = True

    def _counts(self, pattern: str) -> bool:
        """Return True if a match is not just a part of a longer word or number."""
        if len(pattern) >= _SHORT or not (pattern.isalpha() or pattern.isdecimal()):
            return True
        place = self._places[-len(pattern)]
        before = self._held[place - 1] if place else self._last
        return not before.isdecimal() if pattern.isdecimal() else not before.isalnum()


def revealing(scene: Scene, values: Sequence[Any]) -> list[int]:
    """Return the indexes of the values that contain information that is not public.

    The narrator knows what its audience alone may know, but what it writes into the mechanics reaches other
    viewers.
    """
    written = [[text for text in texts_in(value) if len(text) >= LEAST_CHARACTERS] for value in values]
    if not any(written):
        return []
    tripwire = Tripwire(replace(scene, view=Viewers(scene.spec).view(None)))
    return [place for place, texts in enumerate(written) if texts and tripwire.leaks(*texts)]


class _Patterns:
    """Index of the patterns to search for."""

    def __init__(self, patterns: set[str]) -> None:
        self._sorted = sorted(patterns)
        self._by_end: dict[str, tuple[str, ...]] = {}
        for pattern in self._sorted:
            end = pattern[-LEAST_CHARACTERS:]
            self._by_end[end] = (*self._by_end.get(end, ()), pattern)

    def begin_with(self, text: str) -> bool:
        """Return True if a pattern begins with a text."""
        place = bisect_left(self._sorted, text)
        return place < len(self._sorted) and self._sorted[place].startswith(text)

    def at_end_of(self, text: str) -> Iterator[str]:
        """Yield the patterns that a text ends with."""
        return filter(text.endswith, self._by_end.get(text[-LEAST_CHARACTERS:], ()))


@lru_cache(maxsize=_KEPT_PATTERNS)
def _patterns(secrets: tuple[str, ...]) -> _Patterns:
    return _Patterns({form for secret in secrets for form in _forms(secret)})


@lru_cache(maxsize=_KEPT_FORMS)
def _forms(secret: str) -> tuple[str, ...]:
    """Return the normalized spellings of a secret that are long enough to be significant."""
    return tuple(form for form in map(squeezed, _written(secret)) if len(form) >= LEAST_CHARACTERS)


def _written(secret: str) -> Iterator[str]:
    """Yield the spellings of a secret; case and spacing do not matter."""
    yield secret
    yield squeezed(secret)[::-1]
    some = secret[:_ENCODED_CHARACTERS]
    if len(squeezed(some)) < LEAST_CHARACTERS:
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
