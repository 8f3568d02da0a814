"""Builder of the packed tables of Spanish and German nouns; needed only when the tables change.

A table has one line for each noun: the noun, a letter for its gender (m, f or n) and its plural, with tabs
between them. A German compound is left out if a shorter noun at its end gives the same gender and plural.

The nouns are lexemes of Wikidata (CC0). The wheel of `scribe-data` 3.3.0 on PyPI contains them as JSON.

Usage: python docs/build_nouns.py FOLDER_OF_THE_UNPACKED_WHEEL
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path

from peripety.author.text_analysis import noun_forms

FOLDER = Path(noun_forms.__file__).parent
SOURCE = "scribe_data/extract_transform/languages/{}/formatted_data/nouns.json"
LANGUAGES = {"es": "Spanish", "de": "German"}
SHORTEST = 3


def main() -> None:
    """Write both tables."""
    for code, name in LANGUAGES.items():
        table = json.loads((Path(sys.argv[1]) / SOURCE.format(name)).read_text(encoding="utf-8"))
        nouns: dict[str, tuple[str, str]] = {}
        for noun, forms in sorted(table.items(), key=lambda item: (len(item[0]), item[0])):
            genders = [form for form in forms["form"].split("/") if form in ("M", "F", "N")]
            plural = forms["plural"]
            if not noun.isalpha() or len(genders) != 1 or plural == "isPlural" or len(noun) < SHORTEST:
                continue
            entry = (genders[0].lower(), plural if plural.isalpha() and plural != "noPlural" else "")
            if code == "de" and _is_derived(noun, entry, nouns):
                continue
            nouns[noun] = entry
        lines = sorted("\t".join((noun, *entry)) for noun, entry in nouns.items())
        packed = lzma.compress("\n".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME)
        (FOLDER / f"nouns_{code}.txt.xz").write_bytes(packed)
        sys.stdout.write(f"{code}: {len(lines)} nouns, {len(packed)} bytes\n")


def _is_derived(noun: str, entry: tuple[str, str], nouns: dict[str, tuple[str, str]]) -> bool:
    """Return True if the longest known noun at the end of a compound gives its gender and plural."""
    for start in range(1, len(noun) - SHORTEST + 1):
        end = noun[start:].capitalize()
        if end in nouns:
            gender, plural = nouns[end]
            return (gender, plural and noun[:start] + plural.lower()) == entry
    return False


if __name__ == "__main__":
    main()
