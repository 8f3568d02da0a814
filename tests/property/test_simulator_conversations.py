"""Conversations do not disturb each other, whatever their number and order."""

from __future__ import annotations

import random
from pathlib import Path  # noqa: TC003

import pytest

from peripety.llmsim.simulator import Simulator
from support.llmsim.simulator import SCENARIO, WORDS, Conversation, ask, converse


@pytest.mark.slow(reason="holds many conversations")
@pytest.mark.parametrize("seed", range(3))
def test_each_of_many_conversations_is_answered_as_if_it_were_alone(seed: int) -> None:
    converse(Simulator(SCENARIO), conversations=300, operations=6_000, seed=seed)


def transcripts(order: list[str], *, restart: Path | None = None) -> dict[str, list[str]]:
    """Return the answers to each conversation, when their steps run in some order."""
    chances = {name: random.Random(name) for name in order}
    conversations = {name: Conversation(name, named=bool(len(name) % 2)) for name in order}
    heard: dict[str, list[str]] = {name: [] for name in order}
    simulator = Simulator(SCENARIO, seed=5, state=restart)
    for name in order:
        request = conversations[name].request(" ".join(chances[name].choices(WORDS, k=2)))
        text, whole = ask(simulator, request)
        conversations[name].heard(request, text)
        heard[name].append(whole)
        if restart is not None:
            simulator.close()
            simulator = Simulator(SCENARIO, seed=5, state=restart)
    simulator.close()
    return heard


NAMES = ["a", "bb", "ccc", "dddd"]


def test_transcripts_are_the_same_in_every_run_and_in_every_order() -> None:
    order = NAMES * 12
    shuffled = random.Random(1).sample(order, len(order))
    assert transcripts(order) == transcripts(order)
    assert transcripts(shuffled) == transcripts(order)


def test_transcripts_are_the_same_over_restarts(tmp_path: Path) -> None:
    order = NAMES * 6
    assert transcripts(order, restart=tmp_path / "state") == transcripts(order)


def test_another_seed_gives_other_ids() -> None:
    request = Conversation("x", named=True).request("alpha")
    assert ask(Simulator(SCENARIO, seed=1), request) != ask(Simulator(SCENARIO, seed=2), request)
