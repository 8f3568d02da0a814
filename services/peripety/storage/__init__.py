"""Database of a process: a SQLite file, or a PostgreSQL server shared by several processes.

A service declares its tables on `METADATA`, gets the process's `Database`, and works inside `read()` and
`write()`. Each of them is one transaction: committed when the block ends, rolled back when it raises. The
same statements run on both databases; docs/decisions/0004-storage.md documents the guarantees of each. The
steps in `migrations` upgrade the tables of an older database.
"""

from peripety.storage.database import Database
from peripety.storage.schema import METADATA

__all__ = ["METADATA", "Database"]
