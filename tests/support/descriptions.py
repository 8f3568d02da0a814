"""Descriptions of scenarios, made up: in several languages and scripts, of any length, and nonsense."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["descriptions"]

_CLAUSES = {
    "en": (
        *("I run the {a}", "the {a} is rising", "we have {n} weeks left", "there are {m} {a}"),
        *("{P} wants the {a} by Friday", "only {m} percent of the {a} remain", "we asked {P} about the {a}"),
    ),
    "es": ("Dirijo el {a}", "el {a} sube", "quedan {n} semanas", "hay {m} {a}", "nuestra {a} no es de {P}"),
    "fr": ("Je dirige le {a}", "la {a} monte", "il reste {n} jours", "il y a {m} {a}", "notre {a} est à {P}"),
    "de": ("Ich leite das {A}", "die {A} steigt", "es bleiben noch {n} Wochen", "wir haben {m} {A}"),
    "pt": ("Dirijo o {a}", "a {a} sobe", "restam {n} dias", "há {m} {a}", "o nosso {a} não é de {P}"),
    "it": ("Dirigo il {a}", "la {a} sale", "restano {n} ore", "ci sono {m} {a}", "il nostro {a} è di {P}"),
}
_SCRIPTS = (
    (0x430, 0x44F),
    (0x5D0, 0x5EA),
    (0x627, 0x64A),
    (0x915, 0x939),
    (0x4E00, 0x9FFF),
    (0x30A1, 0x30FA),
)
_ANYTHING = ((0x20, 0x7E), (0xC0, 0x24F), *_SCRIPTS, (0x1F300, 0x1F5FF))
_NUMBERS = ("two", "9", "twelve", "40")
_AMOUNTS = ("7", "40", "3,000", "eighty", "120")


def descriptions(count: int, seed: int = 0) -> Iterator[str]:
    """So many descriptions, the first of them empty; number n does not depend on their count."""
    yield ""
    for number in range(1, count):
        rng = random.Random(f"{seed}:{number}")
        kind = number % 4
        if kind == 0:
            yield _nonsense(rng)
        elif kind == 1:
            yield _in_script(rng)
        else:
            yield _in_language(rng)


def _in_language(rng: random.Random) -> str:
    clauses = _CLAUSES[rng.choice(sorted(_CLAUSES))]
    told = [_filled(rng.choice(clauses), rng) for _ in range(rng.choice((1, 2, 3, 5, 8, 30)))]
    return ", ".join(told) + "."


def _filled(clause: str, rng: random.Random) -> str:
    word = _word(rng)
    return clause.format(
        a=word,
        A=word.capitalize(),
        P=_word(rng).capitalize(),
        n=rng.choice(_NUMBERS),
        m=rng.choice(_AMOUNTS),
    )


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("bdgkprtvz") + rng.choice("aou") for _ in range(rng.choice((2, 3, 4))))


def _in_script(rng: random.Random) -> str:
    first, last = rng.choice(_SCRIPTS)
    words = range(rng.choice((1, 3, 9, 25)))
    return " ".join("".join(chr(rng.randint(first, last)) for _ in range(rng.randint(1, 9))) for _ in words)


def _nonsense(rng: random.Random) -> str:
    length = rng.choice((1, 3, 20, 300))
    return "".join(chr(rng.randint(*rng.choice(_ANYTHING))) for _ in range(length))
