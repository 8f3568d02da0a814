"""Grammar distinguishes people from things: only the words around a name decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peripety.author.text_analysis.keywords import analyze_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.author.text_analysis.keywords import TextAnalysis

    MadeUp = Callable[[int, int], list[str]]


def reading(text: str) -> TextAnalysis:
    return analyze_text(text, min_terms=4, max_terms=8)


@pytest.mark.parametrize(
    "text",
    [
        "we have a {b}, and the {a} wants it by tomorrow",
        "the {a} of our {b} wants it",
        "our {a} doesn't know where the {b} is",
        "the {a} has always insisted on the {b}",
        "there is a {b}. My {a} is afraid of it",
        "we need the {b} because the best {a} is no longer speaking",
        "the {b}'s {a} wants it",
        "we have the {b} and a {a}, who is here",
        "the {a} refuses to speak about the {b}",
        "hay un {b} y la {a} sabe todo",
        "el {a} del {b} quiere una parte",
        "tenemos el {b} y un {a}, que miente",
        "il y a un {b} et la {a} veut une part",
        "nous avons le {b} et un {a}, qui sait tout",
        "wir haben den {B}, und der {A} will bis morgen alles",
        "wir haben den {B} und einen {A}, der alles weiß",
        "há um {b} e o {a} sabe tudo",
        "o {a} do {b} quer uma parte",
        "siamo nel {b} e la {a} sa tutto",
        "il {a} della {b} vuole una parte",
    ],
)
def test_what_does_what_only_people_do_is_a_person(text: str, made_up: MadeUp) -> None:
    a, b = made_up(2, 20)
    found = reading(text.format(a=a, b=b, A=a.capitalize(), B=b.capitalize()))
    assert found.people == (a.capitalize(),)
    assert a.capitalize() not in found.terms
    assert b.capitalize() in found.terms


@pytest.mark.parametrize(
    "text",
    [
        "the {a} is cracking and the {b} is down",
        "the {a} refuses the {b}",
        "the {a} says that the {b} is low",
        "the {a} threatens to take the {b}",
        "the {a} doesn't want to start without the {b}",
        "the {a} is wanted by all and the {b} is known",
        "the {a} was asked about and the {b} is here",
        "those who own the {a} want the {b}",
        "the {a} that we know is the {b}",
        "what we want is the {a} and to know the {b}",
        "the {a} to know is the {b}",
        "there is a {a} both want and a {b} asked for",
        "the {a} asked is high and the {b} is low",
        "la forma de hablar del {a} y el {b} que quiere la otra",
        "la {a} no quiere arrancar y el {b} se cae",
        "el {a} dice que el {b} sube",
        "la {a} ne veut pas partir et le {b} est là",
        "le {a} qui monte est dans la {b}",
        "der {A} will nicht mehr und das {B} ist hier",
        "das {A} will ich, und das {B} will niemand",
        "die {A}, die steigt, und das {B}",
        "a {a} não quer mais e o {b} sobe",
        "la {a} non vuole più e il {b} sale",
    ],
)
def test_what_things_are_said_to_do_makes_no_person(text: str, made_up: MadeUp) -> None:
    a, b = made_up(2, 21)
    found = reading(text.format(a=a, b=b, A=a.capitalize(), B=b.capitalize()))
    assert found.people == ()


@pytest.mark.parametrize("ending", ["er", "or", "ist", "ant", "in"])
def test_no_ending_of_a_word_makes_a_person(ending: str, made_up: MadeUp) -> None:
    (a,) = made_up(1, 22)
    assert reading(f"my {a}{ending} is failing and the {a}{ending} refuses to start").people == ()


@pytest.mark.parametrize(
    "text",
    [
        "each {a} will tell me what it knows of the {b}",
        "two of the {a} no longer know the {b}",
        "both {a} want the {b}",
        "ambos {a} quieren la {b}",
        "chaque {a} veut la {b}",
        "jeder {A} will das {B}",
        "cada {a} quer o {b} e não há mais",
        "ogni {a} vuole la {b}",
    ],
)
def test_parties_that_are_alike_are_told_apart_by_letters(text: str, made_up: MadeUp) -> None:
    a, b = made_up(2, 23)
    found = reading(text.format(a=a, b=b, A=a.capitalize(), B=b.capitalize()))
    assert found.people == (f"{a.capitalize()} A", f"{a.capitalize()} B")


def test_parties_share_a_name_where_there_is_no_room_for_each(made_up: MadeUp) -> None:
    a, b, c = made_up(3, 24)
    found = reading(f"the {a} wants it, the {b} knows it, and both {c} know it")
    assert set(found.people) == {word.capitalize() for word in (a, b, c)}


def test_a_crowd_is_one(made_up: MadeUp) -> None:
    (a,) = made_up(1, 25)
    assert reading(f"forty {a} want to know").people == (a.capitalize(),)


@pytest.mark.parametrize(
    "text",
    [
        "I'm the {a} of a {b}",
        "It is late, and I am the only {a} in the {b}",
        "I'm a beloved {a} who wants the {b}",
        "You are the new {a} of a {b}",
        "Soy la {a} de un {b}",
        "Vous êtes la {a} de cette {b}",
        "Je suis le {a} d'une {b}",
        "Ich bin die {A} von einem {B}",
        "Ich bin {A} und habe das {B}",
        "Eu sou a {a} de uma {b}",
        "Sono il {a} di una {b}",
    ],
)
def test_what_the_text_says_the_player_is_names_the_player(text: str, made_up: MadeUp) -> None:
    a, b = made_up(2, 26)
    found = reading(text.format(a=a, b=b, A=a.capitalize(), B=b.capitalize()))
    assert found.player == a.capitalize()
    assert found.people == ()
    assert found.player not in found.terms


@pytest.mark.parametrize(
    "text",
    [
        "I am in the {a}",
        "I'm a few days from the {a}",
        "I'm on the {a}",
        "I am. The {a} is here",
        "Wo bin ich? {A}!",
    ],
)
def test_where_the_player_is_or_when_is_not_who_the_player_is(text: str, made_up: MadeUp) -> None:
    (a,) = made_up(1, 27)
    assert reading(text.format(a=a, A=a.capitalize())).player == ""


def test_a_text_without_end_is_read_at_once(made_up: MadeUp) -> None:
    (a,) = made_up(1, 28)
    assert reading(f"the {a}" + f" of the {a}" * 5000 + " wants it").people == ()
    assert reading("the " * 5000 + f"{a} wants it").people == ()
