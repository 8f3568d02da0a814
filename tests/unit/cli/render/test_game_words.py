"""Words of the terminal in the language of a story, and reasons of refusals."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from typing import Any

import pytest

from peripety.author.spec_author import author_from_text
from peripety.cli.render import game_words
from peripety.cli.render.game_words import GameWords
from peripety.cli.render.gauges import ScenarioNames

TEXTS = {
    "en": "I must hold out until the ship comes. There is food for three days.",
    "es": "Debes resistir hasta que llegue la lluvia. Tienes agua para cinco d\u00edas.",
    "de": "Wir m\u00fcssen durchhalten, bis Hilfe kommt. Ich habe Diesel f\u00fcr acht Stunden.",
    "zh": "\u5fc5\u987b\u575a\u6301\u5230\u6551\u63f4\u5230\u6765\uff0c"
    "\u53ea\u5269\u4e03\u5929\u7684\u7164\u3002",
}
TABLES: dict[str, dict[str, Any]] = tomllib.loads(
    resources.files(game_words.__package__).joinpath("game_words.toml").read_text(encoding="utf-8")
)


def slots(value: Any) -> Any:
    if isinstance(value, str):
        return sorted(re.findall(r"{(\w+)}", value))
    return sorted(value) if isinstance(value, dict) else len(value)


def test_every_language_has_all_words_with_the_same_values() -> None:
    english = {key: slots(value) for key, value in TABLES["en"].items()}
    for language, table in TABLES.items():
        assert {key: slots(value) for key, value in table.items()} == english, language
        commands = [command.split()[0] for command, _ in table["help"][3:]]
        assert commands == [command.split()[0] for command, _ in TABLES["en"]["help"][3:]]


@pytest.mark.parametrize("language", TEXTS)
def test_a_scenario_is_played_in_its_language(language: str) -> None:
    names = ScenarioNames(author_from_text(TEXTS[language], 1))
    assert names.words.say("cannot") == TABLES[language]["cannot"]
    assert TABLES[language]["units"]["turn"][-2:][0] in names.words.count(2, "turn")


def test_a_language_without_words_is_played_in_english() -> None:
    assert GameWords("fr").say("cannot") == "You cannot do that now."


def test_numbers_agree_with_their_units() -> None:
    assert GameWords("en").count(1, "day") == "1 day"
    assert GameWords("de").count(14, "turn") == "14 Z\u00fcge"
    assert GameWords("de").count_played(14) == "14 Z\u00fcgen"
    assert GameWords("de").count_played(1) == "1 Zug"
    assert GameWords("zh").count(1, "hour") == "1 \u5c0f\u65f6"


NERVE = {"var": "state.nerve"}
DECIDED = {"===": [{"var": "state.hidden.decided"}, 0]}
HARM = {"op": "inc", "path": "state.hidden.decided", "value": 1}


@pytest.mark.parametrize(
    ("rule", "events", "reason"),
    [
        ({"preconditions": {">=": [NERVE, 3]}}, [], "Too low: Nerve."),
        ({"preconditions": {"<": [3, NERVE]}}, [], "Too low: Nerve."),
        ({"preconditions": {"<=": [NERVE, 1]}}, [], "High enough already: Nerve."),
        ({"preconditions": {"and": [{">": [NERVE, 2]}, {">=": [NERVE, 1]}]}}, [], "Too low: Nerve."),
        ({"preconditions": {"===": [NERVE, 0]}}, [], "High enough already: Nerve."),
        ({"preconditions": {}, "once": True}, [], "Something that you did before rules it out."),
        ({"preconditions": DECIDED}, [], "Something that you did before rules it out."),
        (
            {"preconditions": DECIDED},
            [{"effects": [HARM]}],
            "Something that you do not see stands in the way.",
        ),
        ({"preconditions": {"or": [{">=": [NERVE, 3]}]}}, [], ""),
    ],
)
def test_a_refusal_names_what_the_player_sees(
    rule: dict[str, Any], events: list[dict[str, Any]], reason: str
) -> None:
    spec = {"actions": [{"id": "act", **rule}], "random_events": events}
    told = GameWords().explain_refusal(spec, "act", {"nerve": 2}, lambda _: "Nerve")
    assert told == f"You cannot do that now. {reason}".strip()
