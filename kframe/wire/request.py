"""One encoded control request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple


class EncodedRequest(NamedTuple):
    """The body of one request, without size and header, for the broker of index ``broker``.

    It is the chunks one after another, the first with the broker's own epoch. What is the same for several brokers is
    one chunk that their requests share. A named tuple, because a failed broker is hundreds of small requests and this
    is the type that is made fastest.
    """

    broker: int
    api_key: int
    api_version: int
    chunks: tuple[bytes | memoryview, ...]
    partitions: int
    """How many partitions it tells of: those of a broker's requests of one kind follow on one another in its rows."""

    @property
    def nbytes(self) -> int:
        """Bytes of the body."""
        return sum(len(chunk) for chunk in self.chunks)


_MAKE: Final[Callable[[Any], EncodedRequest]] = partial(tuple.__new__, EncodedRequest)


def requests_of(
    api_key: int, api_version: int, brokers: Iterable[int], prefixes: Iterable[bytes], bodies: Iterable[memoryview],
    partitions: Iterable[int],
) -> Iterator[EncodedRequest]:  # fmt: skip
    """One request for each of ``brokers``, of what stands beside it in ``prefixes``, ``bodies`` and so on."""
    chunks = zip(prefixes, bodies, strict=True)
    # The broker comes first, so that zip ends with it and the repeated values end nothing. ``_make`` would do the same,
    # but in Python code.
    return map(_MAKE, zip(brokers, repeat(api_key), repeat(api_version), chunks, partitions, strict=False))
