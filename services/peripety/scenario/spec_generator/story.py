"""Keys of version 1.1 for a random specification: places, clues, a statement, a promise, a deal.

None of its rules moves a gauge or the goal, so the calibration holds with them. They only take turns of
random play from other actions, which the estimated frequencies include.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.scenario.spec_generator.rules import RuleDraft

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.scenario.spec_generator.state_vars import DrawStream, StateVars


Json = dict[str, Any]

_TRUTHS = ("truth_1", "truth_2", "truth_3")
_CLUES = 3
# Estimated probabilities that an action of these kinds is legal under random play.
_LIKELY_ONCE = 0.3
_LIKELY_PROMISE = 0.1


@dataclass(frozen=True, slots=True)
class StoryDraft:
    """Story of a specification.

    Attributes:
        truths: the values of the deal.
        places: the ids of the places, in a circle.
        entities: the ids of the entities; the first one is moved by the player.
        due: the number of turns until the promise is due.
        hears_after: the number of turns until the last entity hears of it.
        event_reveals: the number of the event that reveals the last clue.
    """

    truths: tuple[str, ...]
    places: tuple[str, ...]
    entities: tuple[str, ...]
    due: int
    hears_after: int
    event_reveals: int

    @classmethod
    def draw(cls, source: DrawStream, events: int) -> StoryDraft:
        """Draw a story for a specification with a number of events."""
        return cls(
            _TRUTHS[: source.draw_between(2, len(_TRUTHS))],
            tuple(f"place_{number}" for number in range(1, source.draw_between(2, 4) + 1)),
            tuple(f"entity_{number}" for number in range(1, source.draw_between(2, 3) + 1)),
            source.draw_between(2, 6),
            source.draw_between(1, 3),
            source.draw_below(events),
        )

    def write_actions(self) -> list[RuleDraft]:
        """Return the actions of the story; they have no price and no use."""
        me, *others = self.entities
        go = RuleDraft(params={"to": {"type": "string", "enum": [*self.places]}}, likely=0.9)
        go.effects.append({"op": "move", "entity": me, "to": {"param": "to"}})
        tell = RuleDraft(params={"whom": {"type": "string", "enum": [*self.entities]}})
        tell.add_increase("state.told[params.whom]", 1)
        tell.effects.append({"op": "say", "statement": "statement_1"})
        promise = RuleDraft(effects=[{"op": "promise", "promise": "promise_1"}], likely=_LIKELY_PROMISE)
        settle = [
            RuleDraft(effects=[{"op": operation, "promise": "promise_1"}], likely=_LIKELY_PROMISE)
            for operation in ("keep", "break")
        ]
        search = [
            RuleDraft(effects=[{"op": "reveal", "clue": name}], likely=_LIKELY_ONCE, once=True)
            for name in self._clues()[:-1]
        ]
        return [go, *search, tell, promise, *settle[: len(others)]]

    def add_to_events(self, events: Sequence[RuleDraft]) -> None:
        """Add the effects of the story to the events."""
        events[self.event_reveals].effects.append({"op": "reveal", "clue": self._clues()[-1]})

    def add_to_spec(self, spec: Json, world: StateVars) -> Json:
        """Return a specification of version 1.0 as one of version 1.1, with the keys of the story."""
        state = {**spec["state"], "told": dict.fromkeys(self.entities, 0)}
        state["hidden"] = {**state.get("hidden", {}), "truth": self.truths[0]}
        known = {entity["id"]: entity for entity in spec.get("entities", ())}
        entities = [
            {"id": name, **known.get(name, {}), "place": self.places[number % len(self.places)]}
            for number, name in enumerate(self.entities)
        ]
        others = [entity for name, entity in known.items() if name not in self.entities]
        texts = {"deal": "truth", "texts": {truth: f"text of {truth}" for truth in self.truths}}
        stock = world.stocks[0]
        return {
            **spec,
            "spec_version": "1.1",
            "state": state,
            "entities": [*entities, *others],
            "bounds": {stock.path: {"min": 0}},
            "deal": [{"id": "truth", "path": "state.hidden.truth", "values": [*self.truths]}],
            "places": {
                name: {"exits": [self.places[(number + 1) % len(self.places)]]}
                for number, name in enumerate(self.places)
            },
            "clues": {name: {"text": texts, "about": "truth"} for name in self._clues()},
            "statements": {
                "statement_1": {
                    "by": self.entities[-1],
                    "text": "text of statement_1",
                    "true": {"===": [{"var": "state.hidden.truth"}, self.truths[0]]},
                    "broken_by": self._clues()[0],
                },
            },
            "promises": {
                "promise_1": {
                    "by": self.entities[0],
                    "to": self.entities[1],
                    "terms": "terms of promise_1",
                    "due": self.due,
                    "hears": [{"entity": self.entities[-1], "after": self.hears_after}],
                },
            },
        }

    def _clues(self) -> list[str]:
        return [f"clue_{number}" for number in range(1, _CLUES + 1)]
