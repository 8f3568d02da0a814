"""The database of a process: a SQLite file, or a PostgreSQL server when several processes share one.

A service declares its tables on `METADATA`, asks for the process's `Database` and works inside `read()` and
`write()`, each of which is one transaction: committed when the block ends, rolled back when it raises. The
same statements run on both; docs/decisions/0004-storage.md says what each of them promises, and how.
Tables that changed since a database was made are brought up to date by the steps in `migrations`.
"""

from peripety.storage.database import Database
from peripety.storage.schema import METADATA

__all__ = ["METADATA", "Database"]
