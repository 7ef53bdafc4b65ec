"""A read-only store."""

from __future__ import annotations

from typing import Any, Final, NoReturn, cast

from kframe.errors import StoreError
from kframe.ports.store import Store

#: The calls of a store that change nothing; every other call is refused.
READS: Final = frozenset(
    {
        "close", "connected", "controller", "load", "open", "owns_role", "quarantined", "read_brokers", "read_configs",
        "read_deletions", "read_preferred_election", "read_reassignments", "read_states", "read_topic_names",
        "read_topic_settings", "read_topics",
    }
)  # fmt: skip


class ReadOnlyStore:
    """A wrapper of a store that allows only READS; all other calls raise StoreError and do not reach the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name in READS:
            return getattr(self._store, name)

        def refuse(*_args: object, **_named: object) -> NoReturn:
            raise StoreError(f"{name}: a shadow writes nothing")

        return refuse


def read_only(store: Store) -> Store:
    """A read-only view of ``store``."""
    return cast(Store, ReadOnlyStore(store))
