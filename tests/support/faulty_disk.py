"""A disk that fails at one of its operations, under every SQLite file that this process opens meanwhile.

SQLite lets a program put a layer of its own between the library and the files (a VFS). This one passes all
through to the usual one, and counts what changes a file.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import sqlite3
from ctypes import CFUNCTYPE, POINTER, Structure, addressof, c_char_p, c_int, c_int64, c_void_p, cast, memmove
from typing import TYPE_CHECKING, Any, Literal, Self

import pytest

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["FaultyDisk", "Kind"]

Kind = Literal["error", "full", "torn"]

_Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_Write = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
_Sync = CFUNCTYPE(c_int, c_void_p, c_int)


class _Layer(Structure):
    """`sqlite3_vfs`, as far as it is changed."""

    _fields_ = (
        ("version", c_int),
        ("size_of_file", c_int),
        ("longest_path", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", _Open),
        ("others", c_void_p * 15),
    )


class _Methods(Structure):
    """`sqlite3_io_methods`: what can be done with an open file."""

    _fields_ = (
        ("version", c_int),
        ("close", c_void_p),
        ("read", c_void_p),
        ("write", _Write),
        ("truncate", _Truncate),
        ("sync", _Sync),
        ("others", c_void_p * 13),
    )


_in_use: list[object] = []
"""All of it, for ever: SQLite closes a file when the last statement on it is gone, perhaps much later."""


class FaultyDisk:
    """What is under every SQLite file that is opened inside of this block.

    Attributes:
        failed: how many operations have failed since `fail` was called.
    """

    def __enter__(self) -> Self:
        self._library = _library()
        usual = cast(self._library.sqlite3_vfs_find(None), POINTER(_Layer)).contents
        self._usual = usual
        self._layer = _Layer()
        memmove(addressof(self._layer), addressof(usual), ctypes.sizeof(_Layer))
        self._layer.name = b"faulty"
        self._layer.open = _Open(self._open)
        self._methods: dict[int, tuple[_Methods, _Methods]] = {}
        self.mend()
        _in_use.append(self)
        self._library.sqlite3_vfs_register(addressof(self._layer), 1)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.mend()
        self._library.sqlite3_vfs_register(addressof(self._usual), 1)
        self._library.sqlite3_vfs_unregister(addressof(self._layer))

    def fail(self, at: int, kind: Kind, *, for_good: bool) -> None:
        """Fail from now on.

        Args:
            at: the operation to fail: 1 for the next one.
            kind: `error` of the device, `full`, or `torn`: an error when half of it was written.
            for_good: whether all that follow fail, too.
        """
        self._left, self._kind, self._for_good, self.failed = at, kind, for_good, 0

    def mend(self) -> None:
        """Fail no more."""
        self._left = self.failed = 0

    def _fails(self) -> bool:
        if self._left == 0:
            return False
        self._left -= 1
        if self._left:
            return False
        self._left = int(self._for_good)
        self.failed += 1
        return True

    def _open(self, _layer: int, name: int | None, file: int, flags: int, flags_out: int | None) -> int:
        result: int = self._usual.open(addressof(self._usual), name, file, flags, flags_out)
        pointer = cast(file, POINTER(c_void_p))
        if pointer.contents.value is not None:
            pointer[0] = addressof(self._wrapped(pointer.contents.value))
        return result

    def _wrapped(self, address: int) -> _Methods:
        if address not in self._methods:
            usual, ours = cast(address, POINTER(_Methods)).contents, _Methods()
            memmove(addressof(ours), address, ctypes.sizeof(_Methods))

            def write(file: int, data: int, size: int, offset: int) -> int:
                if not self._fails():
                    return int(usual.write(file, data, size, offset))
                if self._kind == "torn":
                    usual.write(file, data, size // 2, offset)
                return sqlite3.SQLITE_FULL if self._kind == "full" else sqlite3.SQLITE_IOERR_WRITE

            def truncate(file: int, size: int) -> int:
                return sqlite3.SQLITE_IOERR_TRUNCATE if self._fails() else int(usual.truncate(file, size))

            def sync(_file: int, _flags: int) -> int:
                # Nobody's power fails here, so that nothing else need be done.
                return sqlite3.SQLITE_IOERR_FSYNC if self._fails() else sqlite3.SQLITE_OK

            ours.write, ours.truncate, ours.sync = _Write(write), _Truncate(truncate), _Sync(sync)
            self._methods[address] = (usual, ours)
        return self._methods[address][1]


def _library() -> Any:
    """The SQLite library that Python itself uses."""
    library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
    if not hasattr(library, "sqlite3_vfs_find"):
        pytest.skip("this Python hides its SQLite library, so that no disk can be made to fail under it")
    library.sqlite3_vfs_find.restype = c_void_p
    library.sqlite3_vfs_find.argtypes = [c_char_p]
    library.sqlite3_vfs_register.argtypes = [c_void_p, c_int]
    library.sqlite3_vfs_unregister.argtypes = [c_void_p]
    return library
