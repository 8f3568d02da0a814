"""Paid results of a run, stored with it, so that a run that is continued does not pay for them twice."""

from __future__ import annotations

from collections import Counter
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, ForeignKey, Integer, Table, Text, insert, select

from peripety.core.concurrency import shield_until_done
from peripety.core.runs.types import LostLeaseError
from peripety.core.storage.database import METADATA

if TYPE_CHECKING:
    from sqlalchemy import Select

    from peripety.core.storage.database import Database


def answer_table(runs: Table, name: str) -> Table:
    """Declare the table of the answers of a kind of runs.

    Args:
        runs: the table of the runs; the answers of a run are deleted with it.
        name: name of the table.
    """
    return Table(
        name,
        METADATA,
        Column("run_id", Text, ForeignKey(runs.c.run_id, ondelete="CASCADE"), primary_key=True),
        Column("question", Text, primary_key=True),
        Column("number", Integer, primary_key=True),
        Column("body", Text, nullable=False),
    )


class RunAnswers:
    """Answers that a run has received, by their questions, in the order in which a question was repeated.

    One object serves one execution of the run: a question that is repeated has the second
    answer. Equal questions at the same time may exchange their answers.

    Args:
        database: contains the tables.
        runs: the table of the runs.
        answers: the table of the answers.
        run_id: the run.
    """

    def __init__(self, database: Database, runs: Table, answers: Table, run_id: str) -> None:
        self._database = database
        self._runs = runs
        self._answers = answers
        self._run_id = run_id
        self._asked: Counter[str] = Counter()

    def ask(self, question: str) -> int:
        """Count a question, and return its number in this execution, from 1 for each question."""
        self._asked[question] += 1
        return self._asked[question]

    async def find(self, question: str, number: int) -> str | None:
        """Return the stored answer to a question; None if there is none."""
        async with self._database.read() as connection:
            found: str | None = await connection.scalar(self._select(question, number))
        return found

    async def add(self, question: str, number: int, body: str) -> None:
        """Store an answer, unless another worker has stored one. A cancellation waits until it is stored.

        Raises:
            LostLeaseError: the run was deleted.
            UnavailableError: the database cannot be written now.
        """
        await shield_until_done(self._insert(question, number, body))

    async def _insert(self, question: str, number: int, body: str) -> None:
        async with self._database.write(f"run {self._run_id}") as connection:
            exists = select(self._runs.c.run_id).where(self._runs.c.run_id == self._run_id)
            if await connection.scalar(exists) is None:
                raise LostLeaseError
            if await connection.scalar(self._select(question, number)) is None:
                values = {"run_id": self._run_id, "question": question, "number": number, "body": body}
                await connection.execute(insert(self._answers).values(values))

    def _select(self, question: str, number: int) -> Select[Any]:
        columns = self._answers.c
        return select(columns.body).where(
            columns.run_id == self._run_id,
            columns.question == question,
            columns.number == number,
        )


current_answers: ContextVar[RunAnswers | None] = ContextVar("peripety_run_answers", default=None)
"""Answers of the run that the current task executes; None outside a run that stores them."""
