"""The records of store requests, and the table with which a store handles them."""

from __future__ import annotations

from typing import Any

import pytest

from kframe.embedded import store as embedded
from kframe.errors import StoreError
from kframe.ports import store_requests
from kframe.ports.store_requests import (
    Claim,
    FencedWrite,
    Handlers,
    ReadTopicNames,
    StoreRead,
    StoreRequest,
    StoreWrite,
)

BASES = {StoreRequest, StoreRead, StoreWrite, FencedWrite}
REQUESTS: list[type[StoreRequest[Any]]] = [
    kind
    for kind in vars(store_requests).values()
    if isinstance(kind, type) and issubclass(kind, StoreRequest) and kind not in BASES
]


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
def test_request_reads_or_writes_and_embedded_store_handles_it(kind: type[StoreRequest[Any]]) -> None:
    assert issubclass(kind, StoreRead) != issubclass(kind, StoreWrite)
    assert kind in embedded._HANDLERS._handlers


def test_store_refuses_request_without_handler() -> None:
    class NamesOnly:
        def names(self, request: ReadTopicNames) -> frozenset[str]:
            return frozenset({"orders"})

    handlers = Handlers(ReadTopicNames.handled_by(NamesOnly.names))
    assert handlers.perform(NamesOnly(), ReadTopicNames()) == {"orders"}
    with pytest.raises(StoreError, match="claim: this store does not know the request"):
        handlers.perform(NamesOnly(), Claim(1))
