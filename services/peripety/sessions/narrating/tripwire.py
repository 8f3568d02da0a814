"""The last check before prose is released: does it hold what its audience may not know?

A prompt holds no secrets of others, so a narrator can only guess them, or tell what a defect let through. A
text is recognised however it is cased, spaced or decorated, backwards, and in the usual encodings. Only as
much is held back as may still become a secret. Libraries for many patterns at once tell where one ends, not
how far one has begun; so a text is followed through the sorted patterns themselves.
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
"""How much of a secret is enough to recognise it in an encoding."""
_SHORT = 12
"""Shorter words and numbers count only at the start of one: others hold them by chance."""
_KEPT_PATTERNS = 16
_KEPT_FORMS = 4_096
_BITS_CHARACTERS = 6

_folded = lru_cache(maxsize=4096)(squeezed)


class Tripwire:
    """Follows one text, and releases it as far as no secret can be in it.

    Args:
        scene: the turn that is told, as it is now. Its state is gone through once.
    """

    def __init__(self, scene: Scene) -> None:
        self._patterns = _patterns(secrets_of(scene))
        self._begin()

    def _begin(self) -> None:
        self._leaked = False
        self._held = ""
        self._last = ""
        # The longest end of the text that a pattern begins with, and where its characters come from.
        self._end = ""
        self._places: deque[int] = deque()

    def anew(self) -> Tripwire:
        """The same for another text."""
        other = copy(self)
        other._begin()  # noqa: SLF001 - it is one of its own kind
        return other

    @property
    def leaked(self) -> bool:
        """Whether there was a secret in the text; nothing is released any more."""
        return self._leaked

    def feed(self, text: str) -> str:
        """Take the next piece of the text; what can be released of it and of what was held back."""
        for character in text:
            self._held += character
            for folded in _folded(character):
                self._follow(folded)
            if self._leaked:
                return ""
        return self._release(self._places[0] if self._places else len(self._held))

    def finish(self) -> str:
        """End the text; what was held back of it."""
        return "" if self._leaked else self._release(len(self._held))

    def leaks(self, *texts: str) -> bool:
        """Whether there is a secret in other texts, each for itself or one after the other."""
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
        """Whether a pattern that was found is more than a part of a longer word or number."""
        if len(pattern) >= _SHORT or not (pattern.isalpha() or pattern.isdecimal()):
            return True
        place = self._places[-len(pattern)]
        before = self._held[place - 1] if place else self._last
        return not before.isdecimal() if pattern.isdecimal() else not before.isalnum()


def revealing(scene: Scene, values: Sequence[Any]) -> list[int]:
    """The places of those values that hold what not everybody may know.

    A narrator knows what its audience alone may know, and what it writes into mechanics reaches others.
    """
    written = [[text for text in texts_in(value) if len(text) >= LEAST_CHARACTERS] for value in values]
    if not any(written):
        return []
    tripwire = Tripwire(replace(scene, view=Viewers(scene.spec).view(None)))
    return [place for place, texts in enumerate(written) if texts and tripwire.leaks(*texts)]


class _Patterns:
    """What a text is searched for."""

    def __init__(self, patterns: set[str]) -> None:
        self._sorted = sorted(patterns)
        self._by_end: dict[str, tuple[str, ...]] = {}
        for pattern in self._sorted:
            end = pattern[-LEAST_CHARACTERS:]
            self._by_end[end] = (*self._by_end.get(end, ()), pattern)

    def begin_with(self, text: str) -> bool:
        """Whether a pattern begins with a text."""
        place = bisect_left(self._sorted, text)
        return place < len(self._sorted) and self._sorted[place].startswith(text)

    def at_end_of(self, text: str) -> Iterator[str]:
        """The patterns that a text ends with."""
        return filter(text.endswith, self._by_end.get(text[-LEAST_CHARACTERS:], ()))


@lru_cache(maxsize=_KEPT_PATTERNS)
def _patterns(secrets: tuple[str, ...]) -> _Patterns:
    return _Patterns({form for secret in secrets for form in _forms(secret)})


@lru_cache(maxsize=_KEPT_FORMS)
def _forms(secret: str) -> tuple[str, ...]:
    """The ways to write a secret, squeezed, as far as they are long enough to tell anything."""
    return tuple(form for form in map(squeezed, _written(secret)) if len(form) >= LEAST_CHARACTERS)


def _written(secret: str) -> Iterator[str]:
    """The ways to write a secret; how they are cased and spaced does not matter."""
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
        # What stands before and behind changes the characters that it shares with the secret.
        encoded = base64.b64encode(b"\0" * before + octets).decode()
        yield encoded[-(-before * 8 // 6) : (before + len(octets)) * 8 // 6]
