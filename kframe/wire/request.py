"""One encoded control request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple


class EncodedRequest(NamedTuple):
    """The body of one request, without size and header, for the broker of index ``broker``.

    It is the concatenation of the chunks; the first has the broker's own epoch. Content that is the same for several
    brokers is one chunk that their requests share. This is a named tuple, because it is the fastest type to create and
    the failure of a broker causes hundreds of small requests.
    """

    broker: int
    api_key: int
    api_version: int
    chunks: tuple[bytes | memoryview, ...]
    partitions: int
    """Number of partitions. The requests of one kind to a broker contain consecutive parts of its rows."""

    @property
    def nbytes(self) -> int:
        """Bytes of the body."""
        return sum(len(chunk) for chunk in self.chunks)


_MAKE: Final[Callable[[Any], EncodedRequest]] = partial(tuple.__new__, EncodedRequest)


def requests_of(
    api_key: int,
    api_version: int,
    brokers: Iterable[int],
    prefixes: Iterable[bytes],
    bodies: Iterable[memoryview],
    partitions: Iterable[int],
) -> Iterator[EncodedRequest]:
    """One request for each of ``brokers``, from the parallel ``prefixes``, ``bodies`` and ``partitions``."""
    chunks = zip(prefixes, bodies, strict=True)
    # ``brokers`` comes first, so that zip ends with it and not with a repeated value. ``_make`` would do the same, but
    # in Python code.
    return map(_MAKE, zip(brokers, repeat(api_key), repeat(api_version), chunks, partitions, strict=False))
