"""Names under which prose speaks of the people, places, things, amounts and actions of a turn."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from peripety.session.narration.claims.english import load_toml
from peripety.session.narration.claims.words import NameTable, is_function_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peripety.session.narration.claims.deeds import Deed
    from peripety.session.narration.claims.record import TurnFacts


# A last word of these does not name a place or an amount by itself.
_GENERAL = frozenset(
    [
        "room",
        "place",
        "side",
        "area",
        "floor",
        "door",
        "way",
        "house",
        "hall",
        "thing",
        "part",
        "level",
        "number",
        "amount",
        "count",
        "total",
        "left",
        "time",
        "one",
        "point",
        "end",
        "days",
        "hours",
        "minutes",
        "day",
        "hour",
        "until",
        "above",
        "below",
    ]
)
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)


def name_table(facts: TurnFacts, deeds: Iterable[Deed]) -> NameTable:
    """Return the names of all that the record of a turn knows."""
    table, after = NameTable(), facts.after
    things = {*facts.before.holders, *after.holders}
    for entity, names in after.names.items():
        if entity != after.you and entity.replace("_", " ") not in things:
            table.add("entity", entity, [_plain(name) for name in names])
    _add_roles(table, facts, things)
    table.add("entity", after.you, [_plain(name) for name in after.names.get(after.you, ())])
    places = {**facts.before.place_names, **after.place_names}
    _add_all(table, "place", {key: [_plain(name) for name in names] for key, names in places.items()})
    _add_all(table, "thing", {thing: [thing, *_titles(facts, thing)] for thing in things})
    quantities = facts.before.quantities | after.quantities
    _add_all(
        table,
        "quantity",
        {path: _quantity_names(one.names) for path, one in quantities.items()},
        has_plural=True,
    )
    units = {path: [one.unit] for path, one in quantities.items() if one.unit}
    for path, unit in units.items():
        table.add("unit", path, unit, has_plural=True)
    for path, one in quantities.items():
        table.add("bearer", path, _bearers(one.names))
        bands = ((facts.spec.get("labels") or {}).get(path) or {}).get("bands") or ()
        nouns = [str(band["word"]) for band in bands]
        table.add("quantity", path, [_plain(noun) for noun in nouns if _ARTICLE.match(noun)])
    for deed in deeds:
        if deed.thing:
            words = deed.thing.split()
            table.add("object", f"{deed.action_id}/{deed.thing}", [deed.thing, words[-1]], has_plural=True)
    return table


def _plain(name: str) -> str:
    return _ARTICLE.sub("", name)


def _quantity_names(names: Sequence[str]) -> list[str]:
    """Return the names of a quantity, without what follows its noun: `cans of x`, `days until y`."""
    out = []
    for name in names:
        plain = re.sub(r"^[\w\u2019']+['\u2019]s\s+", "", _plain(name))
        first = re.split(r"\s+(?:of|in|at|on|until|till|to|left|above|below|about)\b", plain)[0]
        out += [plain, first, *re.findall(r"\bof\s+(?!(?:the|your|his|her)\b)(.+)$", plain)]
    synonyms = load_toml("vocabulary.toml")["synonyms"].values()
    out += [word for one in synonyms for word in one.split() if set(one.split()) & set(out)]
    return list(dict.fromkeys(one for one in out if one and one not in _GENERAL))


def _bearers(names: Sequence[str]) -> list[str]:
    """Return what a quantity belongs to: `trust of the town`, `the town's trust`, `money in the box`."""
    out = []
    for name in names:
        out += re.findall(r"\b(?:of|in|at)\s+the\s+(.+)$", name)
        out += re.findall(r"^(?:the\s+)?(.+?)['\u2019]s\s", name)
    return out


def _add_all(table: NameTable, kind: str, names: dict[str, list[str]], *, has_plural: bool = False) -> None:
    """Add names, and the last word of each longer name if it belongs to one of them only."""
    heads = Counter(head for one in names.values() for head in {name.split()[-1] for name in one if name})
    for key, known in names.items():
        table.add(kind, key, known, has_plural=has_plural)
        short = [name.split()[-1] for name in known if len(name.split()) > 1]
        table.add(
            kind,
            key,
            [one for one in short if heads[one] == 1 and one not in _GENERAL],
            has_plural=has_plural,
        )


def _titles(facts: TurnFacts, thing: str) -> list[str]:
    """Return the names of an entity that is the thing."""
    found = []
    for entity in facts.spec.get("entities") or ():
        words = entity["id"].replace("_", " ")
        if words == thing or str(entity.get("name") or "").lower() == thing:
            found += [_plain(str(entity.get("name") or words)).lower(), words]
    return found


def _add_roles(table: NameTable, facts: TurnFacts, things: Iterable[str]) -> None:
    """Add the nouns by which descriptions introduce people, if each belongs to one person."""
    roles: dict[str, list[str]] = {}
    for entity in facts.spec.get("entities") or ():
        if entity["id"].replace("_", " ") in things or entity["id"] == facts.after.you:
            continue
        found = re.match(
            r"^(?:the|an?|your|his|her|their|my)?\s*((?:[\w'\u2019-]+\s+){0,3}?[\w-]+)(?=[,.;:]|\s+(?:of|in|at|who|from|and|with|for|on|to|dead|killed|since)\b|$)",
            str(entity.get("description") or ""),
        )
        words = [
            word
            for word in (found[1].lower().split() if found else ())
            if not word.endswith(("'s", "\u2019s"))
        ]
        if words and not is_function_word(words[-1]) and len(words[-1]) > 2:  # noqa: PLR2004 - a noun
            roles.setdefault(words[-1], []).append(entity["id"])
    for role, owners in roles.items():
        if len(owners) == 1:
            table.add("entity", owners[0], [role])
