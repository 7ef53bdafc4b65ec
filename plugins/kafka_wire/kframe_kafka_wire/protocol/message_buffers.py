"""A message as buffers that are sent one after another, so that large byte strings in it are not copied."""

from __future__ import annotations

from typing import Any, Final, Protocol, Self, TypeAlias

#: Shorter byte strings are copied, because a buffer of its own costs more.
_LARGE: Final = 1 << 14


class FileSection(Protocol):
    """Bytes of a file, which do not change. ``len()`` is their number."""

    @property
    def position(self) -> int:
        """Where they begin in the file."""

    def fileno(self) -> int:
        """The descriptor of the file, which stays open as long as the section is in use."""

    def read(self, start: int, count: int) -> bytes:
        """At most ``count`` of the bytes, from the one numbered ``start`` on."""

    def __len__(self) -> int: ...


#: The buffers of a message in their order.
Buffers: TypeAlias = tuple[bytes | FileSection, ...]


class MessageBuffers(bytearray):
    """The output of an encoder. As a bytearray it has the bytes after the last large byte string."""

    def __init__(self, size: int) -> None:
        """A message that begins with ``size`` zero bytes."""
        super().__init__(size)
        self._complete: list[bytes | FileSection] = []

    def __iadd__(self, value: Any, /) -> Self:  # type: ignore[misc]  # ``+`` does not take sections.
        """Append bytes, or a FileSection."""
        if isinstance(value, bytes | bytearray) and len(value) < _LARGE:
            super().__iadd__(value)
        else:
            self._complete += bytes(self), bytes(value) if isinstance(value, bytearray) else value
            self.clear()
        return self

    def buffers(self) -> tuple[bytes, Buffers]:
        """The first buffer, and the others."""
        last = bytes(self)
        if not self._complete:
            return last, ()
        first, *others = self._complete
        assert isinstance(first, bytes)
        return first, (*others, last)
