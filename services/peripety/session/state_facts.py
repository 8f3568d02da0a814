"""Facts of a visible state: quantities, and for each entity its life, its place and its possessions.

The engine knows paths and values only. The words of a path give the meaning of a value: `state.alpha.alive`,
`state.alpha_at`, `state.items.token.holder`. Labels add the names that readers see. Other values
are not facts, so their readers ignore them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.author.text_analysis.words import load_grammars

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


YOU = "you"
"""Id of the player if it is not an entity."""

_PLAYER_KEYS = frozenset({"player", "you", "self"})
_GROUPS = frozenset(
    {
        "people",
        "entities",
        "characters",
        "persons",
        "cast",
        "private",
        "public",
        "actors",
        "members",
        "party",
    },
)
_ALIVE = frozenset({"alive", "living", "is alive", "lives"})
_DEAD = frozenset({"dead", "deceased", "is dead", "died"})
_LIFE = frozenset({"status", "condition", "life", "state"})
_DEAD_VALUES = frozenset({"dead", "deceased", "killed"})
_ALIVE_VALUES = frozenset({"alive", "living", "well", "healthy", "injured", "wounded", "hurt"})
_PLACE = frozenset({"at", "place", "location", "room", "where", "position", "whereabouts"})
_PRESENT = frozenset({"present", "people", "who", "occupants", "here"})
_HOLDER = frozenset({"holder", "owner", "held by", "carrier", "carried by", "owned by", "possessor"})
_HOLDINGS = frozenset(
    {"has", "holds", "inventory", "items", "carries", "possessions", "belongings", "things"}
)
_VAGUE = frozenset({"value", "amount", "level", "count", "total", "number", "stock", "left", "quantity"})
_WORDS = re.compile(r"[A-Z]?[^\W\dA-Z_]+|[A-Z]+|\d+")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of the state.

    Attributes:
        path: its path.
        names: its names, the best first, in lower case.
        unit: its unit; empty for none.
        owner: the entity below which it is stored; None for none.
        value: its value.
    """

    path: str
    names: tuple[str, ...]
    unit: str
    owner: str | None
    value: float


@dataclass(frozen=True, slots=True)
class StateFacts:
    """Facts of one state.

    Attributes:
        you: the entity that the player is.
        names: the names of each entity, the whole name first.
        quantities: quantities by path.
        alive: True for each entity that is known to be alive, False for each that is dead.
        places: the place of each entity whose place is known.
        holders: the holder of each thing: an entity, or a place.
        place_names: the names of each place, the best first, in lower case.
        flags: True or False for each thing and its state, such as `door` and `locked`.
        sources: the path of each fact, by its kind (`life`, `place`, `holder`) and its entity or thing.
    """

    you: str
    names: Mapping[str, tuple[str, ...]]
    quantities: dict[str, Quantity] = field(default_factory=dict)
    alive: dict[str, bool] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)
    place_names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    flags: dict[tuple[str, str], bool] = field(default_factory=dict)
    sources: dict[tuple[str, str], str] = field(default_factory=dict)

    def name_of(self, entity: str) -> str:
        """Return the name of an entity or a place for readers."""
        if entity == self.you:
            return "you"
        return self.names[entity][0] if entity in self.names else to_words(entity)


def to_words(key: str) -> str:
    """Return the words of a key of the state, in lower case."""
    return " ".join(word.lower() for word in _WORDS.findall(key))


def read_facts(spec: Mapping[str, Any], tree: Any, viewer: str | None) -> StateFacts:
    """Return the facts of a state.

    Args:
        spec: the scenario.
        tree: the visible part of the state.
        viewer: the entity that the player is; None for the only playable entity, if there is one.
    """
    playable = [entity["id"] for entity in spec.get("entities") or () if entity.get("playable")]
    you = viewer or (playable[0] if len(playable) == 1 else YOU)
    reader = _FactReader(StateFacts(you, _entity_names(spec)), spec.get("labels") or {})
    reader.read_all(tree, spec.get("places") or {})
    return reader.facts


def _entity_names(spec: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    entities = spec.get("entities") or ()
    whole = {entity["id"]: entity.get("name") or to_words(entity["id"]).capitalize() for entity in entities}
    parts = [part for name in whole.values() for part in {*name.split()}]
    return {
        entity: tuple(
            dict.fromkeys(
                [name, *(part for part in name.split() if _is_name(part) and parts.count(part) == 1)],
            ),
        )
        for entity, name in whole.items()
    }


def _is_name(part: str) -> bool:
    """Return True if a word of a name can stand for the whole name: `Vale`, and not `The`."""
    is_article = any(one.tags.get(part.lower()) == "det" for one in load_grammars().values())
    return part[:1].isupper() and not is_article


class _FactReader:
    """Walk through a state that collects its facts."""

    def __init__(self, facts: StateFacts, labels: Mapping[str, Any]) -> None:
        self.facts = facts
        self._labels = labels
        self._path = ""
        self._shared: set[str] = set()

    def read_all(self, tree: Any, places: Mapping[str, Any]) -> None:
        """Read a state and the names of its places."""
        for path, value in _iter_values(tree, ("state",)):
            self._read(path, value)
        for place in dict.fromkeys([*places, *self.facts.places.values()]):
            name = str((places.get(place) or {}).get("name") or "").lower()
            self.facts.place_names[place] = tuple(dict.fromkeys(filter(None, [name, to_words(place)])))

    def _read(self, path: tuple[str | int, ...], value: Any) -> None:
        self._path = engine.format_path(path)
        owner, keys = self._split_owner([str(step) for step in path[1:]])
        if not keys:
            return
        words = [to_words(key) for key in keys]
        last = words[-1]
        if isinstance(value, list):
            self._read_list(owner, keys, words, value)
        elif isinstance(value, bool):
            self._read_flag(owner, words, value=value)
        elif isinstance(value, int | float):
            self._read_number(path, owner, words, float(value))
        elif isinstance(value, str):
            self._read_text(owner, keys, last, value)

    def _split_owner(self, keys: list[str]) -> tuple[str | None, list[str]]:
        """Return the entity that a path is about, and the steps that describe the value."""
        owner: str | None = None
        kept: list[str] = []
        for place, key in enumerate(keys):
            is_last = place == len(keys) - 1
            if key in self.facts.names and not is_last:
                owner, kept = key, []
                continue
            if key in _PLAYER_KEYS and not is_last:
                owner, kept = self.facts.you, []
                continue
            found = self._find_prefix(key)
            if found is not None and owner is None:
                owner = self.facts.you if found in _PLAYER_KEYS else found
                kept = [key[len(found) + 1 :]]
                continue
            if key not in _GROUPS or is_last:
                kept.append(key)
        return owner, kept

    def _find_prefix(self, key: str) -> str | None:
        """Return the longest id of an entity that a key begins with, before an underscore."""
        ends = [place for place, character in enumerate(key) if character == "_"]
        prefixes = (key[:end] for end in reversed(ends))
        return next((one for one in prefixes if one in self.facts.names or one in _PLAYER_KEYS), None)

    def _read_list(self, owner: str | None, keys: list[str], words: list[str], value: list[Any]) -> None:
        texts = [item for item in value if isinstance(item, str)]
        if words[-1] in _PRESENT and len(keys) > 1:
            for one in texts:
                if one in self.facts.names:
                    self._add_place(one, keys[-2])
        elif words[-1] in _HOLDINGS:
            for one in texts:
                self._add_holder(to_words(one), owner)

    def _read_flag(self, owner: str | None, words: list[str], *, value: bool) -> None:
        last = words[-1]
        if owner is not None and last in _ALIVE:
            self._add_life(owner, is_alive=value)
        elif owner is not None and last in _DEAD:
            self._add_life(owner, is_alive=not value)
        elif value and last.startswith("has "):
            self._add_holder(last.removeprefix("has "), owner)
        elif value and len(words) > 1 and words[-2] in _HOLDINGS:
            self._add_holder(last, owner)
        elif owner is None:
            *thing, state = " ".join(words[-2:]).removeprefix("is ").split()
            if thing and thing[-1] != "is":
                self.facts.flags[" ".join(thing), state] = value

    def _read_text(self, owner: str | None, keys: list[str], last: str, value: str) -> None:
        if keys[:-1] == ["places"] and keys[-1] in self.facts.names:
            self._add_place(keys[-1], value)
        elif last in _PLACE and (owner is not None or len(keys) == 1):
            self._add_place(owner or self.facts.you, value)
        elif owner is not None and last in _LIFE and value.lower() in _DEAD_VALUES | _ALIVE_VALUES:
            self._add_life(owner, is_alive=value.lower() in _ALIVE_VALUES)
        elif last in _HOLDER and len(keys) > 1:
            self._add_holder(to_words(keys[-2]), value)
        elif last in _HOLDER and owner is not None:
            # A thing that is an entity of the scenario.
            self._add_holder(to_words(owner), value)
        else:
            thing, _, role = last.rpartition(" ")
            if thing and role in _HOLDER:
                self._add_holder(thing, value)

    def _add_life(self, entity: str, *, is_alive: bool) -> None:
        self.facts.alive[entity] = is_alive
        self.facts.sources["life", entity] = self._path

    def _add_place(self, entity: str, place: str) -> None:
        self.facts.places[entity] = place
        self.facts.sources["place", entity] = self._path

    def _add_holder(self, thing: str, holder: str | None) -> None:
        is_you = holder is None or holder in _PLAYER_KEYS
        found = self.facts.you if is_you else str(holder)
        if thing in self._shared or self.facts.holders.get(thing, found) != found:
            # Two things have the same name, so it names neither.
            self._shared.add(thing)
            self.facts.holders.pop(thing, None)
            return
        self.facts.holders[thing] = found
        self.facts.sources["holder", thing] = self._path

    def _read_number(
        self,
        path: tuple[str | int, ...],
        owner: str | None,
        words: list[str],
        value: float,
    ) -> None:
        text = engine.format_path(path)
        label = self._labels.get(text) or {}
        last, before = words[-1], words[-2:-1]
        plain = [*before, last] if before and last not in _VAGUE else before or [last]
        names = [str(label.get("name") or "").lower(), " ".join(plain), *([] if last in _VAGUE else [last])]
        self.facts.quantities[text] = Quantity(
            text,
            tuple(dict.fromkeys(name for name in names if name)),
            str(label.get("unit") or "").lower(),
            owner,
            value,
        )
        word = next(
            (band["word"] for band in label.get("bands") or () if value <= band.get("upto", value)), ""
        )
        if owner is not None and word.lower() in _DEAD_VALUES:
            self._add_life(owner, is_alive=False)


def _iter_values(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield all leaves, and all lists, with their paths."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _iter_values(inner, (*path, key))
    else:
        yield path, value
        if isinstance(value, list):
            for index, inner in enumerate(value):
                yield from _iter_values(inner, (*path, index))
