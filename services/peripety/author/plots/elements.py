"""Elements: what a text names besides the parts of a plot, with a gauge, an action, an event and a loss.

A plot has fixed parts. A person in need, a thing in a bad state and an opponent without a part become
elements of the scenario. Their rules are in `data/elements.json`, and their texts under `elements` in the
common texts.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from peripety.author.plots.cast import own_phrase
from peripety.author.plots.noun_phrases import NounPhrase, build_phrase
from peripety.author.plots.plot import SETTLE, PlotGauge, load_element_rules
from peripety.author.text_analysis.sides import AGAINST, UNABLE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from peripety.author.plots.phrases import Slots
    from peripety.author.plots.plot import Plot
    from peripety.author.text_analysis.reading import Reading

ELEMENTS = ("charge", "leaver", "worn", "foe")
"""Ids of the elements, in the order in which a text gets them; each is a slot as well."""

_PARTS = ("ally", "rival")
_MOST = 2
"""The most elements of a scenario."""


def list_elements(
    reading: Reading, slots: Slots, common: Mapping[str, Any]
) -> Iterator[tuple[str, NounPhrase]]:
    """Yield the slot and the phrase of each element of a reading.

    Args:
        reading: the reading.
        slots: the words of the user by slot; what they name is not an element.
        common: the texts that all plots of the language share.
    """
    # A person in need, or one who may leave, may have a part as well.
    parts = [slot for slot in slots if slot not in _PARTS]
    taken = [value.bare.casefold() for slot in parts if isinstance(value := slots[slot], NounPhrase)]
    found = (
        ("charge", _list_charges(reading, common)),
        ("leaver", (own_phrase(one, reading, common) for one in reading.people if one.leaves)),
        ("worn", (build_phrase(thing, reading.language) for thing in reading.worn)),
        ("foe", _list_side(reading, AGAINST, common)),
    )
    many = 0
    for name, phrases in found:
        cast = [part.bare.casefold() for slot in _PARTS if isinstance(part := slots.get(slot), NounPhrase)]
        others = [*taken, *(cast if name in ("worn", "foe") else ())]
        fitting = (one for one in phrases if one and not _is_taken(one, others))
        phrase = next(fitting, None) if name in common.get("elements", ()) and many < _MOST else None
        if phrase is not None:
            taken.append(phrase.bare.casefold())
            many += 1
            yield name, phrase


def _is_taken(phrase: NounPhrase, taken: Collection[str]) -> bool:
    """Return True if a slot has the last word of a phrase."""
    head = phrase.bare.casefold().split(" ")[-1]
    return any(head in (bare if phrase.language == "zh" else bare.split()) for bare in taken)


def _list_charges(reading: Reading, common: Mapping[str, Any]) -> Iterator[NounPhrase | None]:
    """Yield who needs something: single persons, animals, then groups."""
    yield from _list_side(reading, UNABLE, common)
    yield from (build_phrase(animal, reading.language) for animal in reading.charges)


def _list_side(reading: Reading, side: str, common: Mapping[str, Any]) -> Iterator[NounPhrase | None]:
    """Yield the phrases of the persons of a side, single persons first."""
    people = [person for person in reading.people if person.side == side]
    for person in sorted(people, key=lambda one: one.is_group):
        yield own_phrase(person, reading, common)


def add_elements(plot: Plot, names: Collection[str]) -> Plot:
    """Return a plot with the rules of elements.

    Args:
        plot: the rules of the plot.
        names: the ids of the elements.
    """
    table = load_element_rules()
    parts = {
        part: next((name for name in names if name in plot.gauges), "")
        for part, names in table["parts"].items()
    }
    if plot.win.startswith("time"):
        # The player waits for time to pass, so it is not a price.
        parts["$clock"] = ""
    for name in (one for one in ELEMENTS if one in names):
        rules = table[name]
        gauge = rules["gauge"]
        price = _choose_price(rules["price"], parts, plot)
        action = _with_price(_with_parts(rules["action"], parts), price, plot)
        event = _with_parts(rules["event"], parts)
        first_decision = next(place for place, one in enumerate(plot.actions) if one.get("once"))
        actions = [*plot.actions]
        actions.insert(first_decision, action)
        # A player who knows the way cares for an element before it is too late.
        need = f"{name}>=7" if gauge.get("good") == "low" else f"{name}<=4"
        steps = [*plot.solution]
        steps.insert(steps.index(SETTLE) + 1, f"{action['id']} if {need}")
        plot = replace(
            plot,
            gauges={
                **plot.gauges,
                name: PlotGauge(gauge["start"], gauge["max"], is_low_good=gauge.get("good") == "low"),
            },
            actions=actions,
            events=[*plot.events, event],
            losses=[*plot.losses, rules["loss"]],
            solution=steps,
        )
    return plot


def _with_parts(rule: Mapping[str, Any], parts: Mapping[str, str]) -> dict[str, Any]:
    """Return a rule with the gauges of a plot in place of parts; what the plot does not have is left out."""
    does = {parts.get(key, key): step for key, step in rule["does"].items()}
    return {**rule, "does": {gauge: step for gauge, step in does.items() if gauge}}


def _choose_price(wanted: Sequence[str], parts: Mapping[str, str], plot: Plot) -> tuple[str, ...]:
    """Return the gauges that an action costs: the first price that no other action of the plot has.

    Args:
        wanted: the parts that may be paid with, the best one first.
        parts: the gauge of each part; empty if the plot has none.
        plot: the rules of the plot.
    """
    taken = [list_price(action["does"], plot.gauges) for action in plot.actions if "does" in action]
    # The last resort is a price that another element pays.
    kinds = [
        *(parts[part] for part in wanted if parts[part]),
        *(one for one in ELEMENTS if one in plot.gauges),
    ]
    prices = (price for size in range(1, len(kinds) + 1) for price in combinations(kinds, size))
    return next(price for price in prices if set(price) not in taken)


def list_price(changes: Mapping[str, int], gauges: Mapping[str, PlotGauge]) -> set[str]:
    """Return the gauges that changes make worse.

    Args:
        changes: the change of each gauge.
        gauges: the gauges of the plot.
    """
    return {
        name
        for name, change in changes.items()
        if name in gauges and (change > 0) == gauges[name].is_low_good
    }


def _with_price(rule: Mapping[str, Any], price: Sequence[str], plot: Plot) -> dict[str, Any]:
    """Return the rule of an action that makes gauges worse by a step, where there is enough of them."""
    good = [name for name in price if not plot.gauges[name].is_low_good]
    steps = {name: -1 if name in good else 1 for name in price}
    when = " & ".join([rule["when"], *(f"{name}>=2" for name in good)])
    return {**rule, "when": when, "does": {**rule["does"], **steps}}


def add_element_texts(texts: Mapping[str, Any], names: Collection[str]) -> Mapping[str, Any]:
    """Return the texts of a plot with those of elements.

    Args:
        texts: the texts of the plot.
        names: the ids of the elements.
    """
    table, told = load_element_rules(), texts["common"].get("elements", {})
    merged = dict(texts)
    for name in (one for one in ELEMENTS if one in names):
        merged["gauges"] = {**merged.get("gauges", {}), name: told[name]["gauge"]}
        for section, part in (("actions", "action"), ("events", "event"), ("losses", "loss")):
            merged[section] = {**merged[section], table[name][part]["id"]: told[name][part]}
    return merged


def read_elements(event_ids: Collection[str]) -> list[str]:
    """Return the ids of the elements of a scenario, by the ids of its events."""
    table = load_element_rules()
    return [name for name in ELEMENTS if table[name]["event"]["id"] in event_ids]
