"""Secrets in other words: sentences with the content words of a text that the audience does not know.

The secret filter finds the words of a secret in their order. A retold secret has the same names and nouns,
and the same lemmas of verbs. So a sentence of the prose that shares half of the content words of a
sentence of the secret, and four of them at least, is withheld, unless one text that the audience knows has
all of these words. A guess in fewer words is not found, and neither is one in synonyms.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import (
    is_function_word,
    number_forms,
    split_sentences,
    verb_table,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_LEAST_SHARED = 4
_CACHED_TEXTS = 4_096
_MIN_CHARACTERS = 3
_WORD = re.compile(r"[^\W\d_]+")


class RetoldSecrets:
    """Checker of sentences that retell a secret.

    Args:
        secrets: texts that the audience may not know.
        known: texts that it knows.
    """

    def __init__(self, secrets: Sequence[str], known: Iterable[str]) -> None:
        parts = {content_words(one) for text in secrets for one in split_sentences(text)}
        self._secrets = [part for part in parts if len(part) >= _LEAST_SHARED]
        self.words = frozenset(
            word for text in secrets for word in _WORD.findall(text.lower()) if not is_function_word(word)
        )
        """The words with which a retold secret may begin."""
        self._known = {content_words(text) for text in known} if self._secrets else set()

    def is_told(self, sentence: str) -> bool:
        """Return True if a sentence, with its speech, retells a secret."""
        told = content_words(sentence) if self._secrets else frozenset[str]()
        for secret in self._secrets:
            shared = told & secret
            is_most = len(shared) >= max(_LEAST_SHARED, -(-len(secret) // 2))
            if is_most and not any(shared <= known for known in self._known):
                return True
        return False


@lru_cache(maxsize=_CACHED_TEXTS)
def content_words(text: str) -> frozenset[str]:
    """Return the lemmas of the words of an English text, without function words and light verbs."""
    found = {word for word in _WORD.findall(text.lower()) if not is_function_word(word)}
    return frozenset(_lemma(word) for word in found if len(word) >= _MIN_CHARACTERS) - words_of(
        "sets", "light"
    )


def _lemma(word: str) -> str:
    readings = verb_table().get(word)
    return readings[0].lemma if readings else number_forms(word)[:2][-1]
