"""Public form of the error that ended a run."""

from __future__ import annotations

import logging

from peripety import logs
from peripety.errors import InternalError, PeripetyError

__all__ = ["public_error"]

_log = logging.getLogger(__name__)


def public_error(error: Exception, run_id: str) -> PeripetyError:
    """Convert an exception to the error shown to clients; internal errors are logged and hidden.

    Args:
        error: the error that ended the run.
        run_id: the id under which the error is logged.
    """
    if isinstance(error, PeripetyError) and not isinstance(error, InternalError):
        return error
    _log.error("unexpected error in a run", extra={"run_id": run_id, **logs.outline(error)})
    return InternalError("internal error of the server; quote the id of the run")
