"""Prompt prefixes, identified by a hash of their content."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from peripety.simulator.model import Section
from peripety.simulator.truth.tokens import BYTES_PER_TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.simulator.model import Block, Prompt

__all__ = ["Cut", "Prefixes"]

DIGEST_BYTES = 16


class Cut(NamedTuple):
    """A prefix.

    Attributes:
        tokens: its length in tokens.
        key: its hash.
        block: the block in which it ends.
    """

    tokens: int
    key: str
    block: int


class Prefixes:
    """The prefixes of a prompt.

    Args:
        scope: further parts of the key: the owner and the model.
        prompt: its blocks, in order. The settings of a section are part of every prefix that reaches into
            it or beyond.
        whole: True if the settings of all sections are part of every prefix.
    """

    def __init__(self, scope: Iterable[str], prompt: Prompt, *, whole: bool = False) -> None:
        self._blocks = prompt.blocks
        self._settings = dict(prompt.settings)
        self._root = blake2b(digest_size=DIGEST_BYTES)
        for text in scope:
            _add(self._root, text.encode("utf-8", "surrogatepass"))
        if whole:
            for section in Section:
                _add(self._root, self._settings.pop(section, b""))

    def ends(self) -> list[Cut]:
        """Return the prefixes that end with a block, one per block."""
        return list(self._cuts(None, self._blocks))

    def steps(self, every: int) -> Iterator[Cut]:
        """Yield the prefixes whose length is a multiple of a number of tokens, inside blocks too.

        Inside a block, a token is four bytes of its content.
        """
        return (cut for cut in self._cuts(every, self._blocks) if cut.tokens % every == 0 and cut.tokens)

    def all(self, every: int) -> list[Cut]:
        """Return the prefixes of `ends` and `steps`, shortest first."""
        return list(self._cuts(every, self._blocks))

    def extended(self, blocks: Iterable[Block]) -> str:
        """Return the key of the whole prompt followed by more blocks."""
        *_, last = self._cuts(None, (*self._blocks, *blocks))
        return last.key

    def _cuts(self, every: int | None, blocks: Iterable[Block]) -> Iterator[Cut]:
        running = self._root.copy()
        done = 0
        section: Section | None = None
        order = tuple(Section)
        for number, block in enumerate(blocks):
            if block.section is not section:
                begin = order.index(section) + 1 if section else 0
                for passed in order[begin : order.index(block.section) + 1]:
                    _add(running, self._settings.get(passed, b""))
                section = block.section
            written = 0
            if every:
                for target in range((done // every + 1) * every, done + block.tokens, every):
                    until = (target - done) * BYTES_PER_TOKEN
                    running.update(block.content[written:until])
                    written = min(until, len(block.content))
                    yield Cut(target, running.hexdigest(), number)
            running.update(block.content[written:])
            running.update(len(block.content).to_bytes(8, "big"))
            done += block.tokens
            yield Cut(done, running.hexdigest(), number)


def _add(hash_: blake2b, data: bytes) -> None:
    hash_.update(len(data).to_bytes(8, "big"))
    hash_.update(data)
