"""Questions to the user: the interruptions that must not be lost."""

from __future__ import annotations

import asyncio
import signal

import pytest

from peripety.cli.prompt import prompt_line


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_just_before_a_question_ends_the_process_too(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", asked.append)

    async def ask() -> str | None:
        signal.raise_signal(signal.SIGINT)
        return prompt_line("> ")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(ask())
    assert asked == []


def test_a_question_is_answered_inside_and_outside_an_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda _question: " an answer ")

    async def ask() -> str | None:
        return prompt_line("> ")

    assert (prompt_line("> "), asyncio.run(ask())) == ("an answer", "an answer")
