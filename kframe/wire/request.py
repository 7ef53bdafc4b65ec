"""One encoded control request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    """The body of one request, without size and header, for the broker of index ``broker``.

    It is the chunks one after another. What is the same for several brokers is one chunk that their requests share.
    """

    broker: int
    api_key: int
    api_version: int
    chunks: tuple[bytes | memoryview, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the body."""
        return sum(len(chunk) for chunk in self.chunks)
