"""Phrases that request a scenario without risk, and similar phrases that do not."""

from __future__ import annotations

import pytest

from peripety.author.text_analysis.languages import find_no_risk_phrase

RISKLESS = [
    "A morning on which nothing can go wrong.",
    "My plans always succeed and I can never lose anything.",
    "We can\u2019t possibly fail.",
    "Please make it risk-free.",
    "Anything you like, with no risk, no rush",
    "It should be impossible to lose.",
    "and everything works out fine",
    "Un día en el que nada puede salir mal",
    "Mis planes siempre salen bien y nunca pierdo nada.",
    "Une journée où rien ne peut mal tourner",
    "Sans aucun risque, s'il te plaît",
    "Es kann gar nichts schiefgehen.",
    "ein Tag, an dem nichts mißlingen kann",
    "Um dia em que nada pode dar errado",
    "Non posso mai perdere nulla.",
    "zonder enig risico",
    "Dzień, w którym nic nie może pójść źle",
    "Мои планы всегда удаются.",
    "день, коли нічого не може піти не так",
    "hiç risk olmadan",
    "没有任何风险的一天",
    "沒有任何風險",
    "絶対に負けない人",
    "위험이 전혀 없는 하루",
    "يوم بدون أي مخاطر",
    "एक दिन जिसमें कुछ भी गलत नहीं हो सकता",
]
AT_STAKE = [
    "Nothing may go wrong today.",
    "We must not fail.",
    "I can't lose this.",
    "We can never lose the trust of the others.",
    "The other side always wins.",
    "There is no risk that is too small to count.",
    "No danger yet, but it is coming nearer.",
    "They never fail to ask.",
    "Nada debe salir mal.",
    "sin riesgo de caer",
    "Rien ne doit mal tourner.",
    "Es darf nichts schiefgehen.",
    "Niente deve andare storto.",
    "Ничего не должно пойти не так.",
    "",
    "🙂🙂",
]


@pytest.mark.parametrize("text", RISKLESS)
def test_a_wish_for_no_risk_is_noticed(text: str) -> None:
    assert find_no_risk_phrase(text)
    assert find_no_risk_phrase(f"{text} {text}") == find_no_risk_phrase(text)


@pytest.mark.parametrize("text", AT_STAKE)
def test_what_is_at_stake_is_no_wish_for_no_risk(text: str) -> None:
    assert find_no_risk_phrase(text) == ""


def test_the_phrase_is_the_first_one_and_spaces_do_not_hide_it() -> None:
    text = "It always\n\tends well,\u200b and nothing  CAN go wrong."
    assert find_no_risk_phrase(text) == "always ends well"
