"""The database of a process: a SQLite file, or a PostgreSQL server when several processes share one.

A service declares its tables on `METADATA`, asks for the process's `Database` and works inside `read()` and
`write()`, each of which is one transaction: committed when the block ends, rolled back when it raises. The
same statements run on both; docs/decisions/0004-storage.md says what each of them promises, and how.
"""

from peripety.storage.database import Database
from peripety.storage.schema import METADATA, SCHEMA_VERSION

__all__ = ["METADATA", "SCHEMA_VERSION", "Database"]
