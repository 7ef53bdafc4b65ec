"""What Kafka keeps in ZooKeeper beside what a controller writes: credentials, ACLs, the id of the cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from kframe import Controller


@runtime_checkable
class Records(Protocol):
    """A store that shows its records as they are. Callable from any thread."""

    def read_record(self, path: str) -> bytes | None:
        """What stands at a path; None if there is no such record."""

    def read_record_names(self, path: str) -> tuple[str, ...]:
        """Names below a path; none if there is no such record."""


class NoRecords:
    """A store that shows nothing."""

    def read_record(self, path: str) -> bytes | None:
        """Nothing."""
        return None

    def read_record_names(self, path: str) -> tuple[str, ...]:
        """Nothing."""
        return ()


def records_of(controller: Controller) -> Records:
    """The records of a controller's store, as far as it shows them."""
    store: object = controller.store
    return store if isinstance(store, Records) else NoRecords()


def decode_record(data: bytes | None) -> Mapping[str, Any]:
    """A record that is a JSON object; empty for anything else."""
    try:
        value = json.loads(data or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def cluster_id(records: Records) -> str | None:
    """``/cluster/id``."""
    found = decode_record(records.read_record("/cluster/id")).get("id")
    return found if isinstance(found, str) else None
