"""What is told of a run that failed."""

from __future__ import annotations

import logging

from peripety import logs
from peripety.errors import InternalError, PeripetyError

__all__ = ["public_error"]

_log = logging.getLogger(__name__)


def public_error(error: Exception, run_id: str) -> PeripetyError:
    """What whoever follows a run is told of a failure; one that is nobody's business is logged instead.

    Args:
        error: what ended the run.
        run_id: by which the log is found.
    """
    if isinstance(error, PeripetyError) and not isinstance(error, InternalError):
        return error
    _log.error("unexpected error in a run", extra={"run_id": run_id, **logs.outline(error)})
    return InternalError("Something went wrong in the server, not in the run; quote its id")
