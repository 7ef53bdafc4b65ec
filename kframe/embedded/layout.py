"""ZooKeeper's paths in the embedded store (``docs/reference/controller/zookeeper.md`` section 1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import msgspec

from kframe.embedded.records import RecordTree
from kframe.model.brokers import Registration

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
BROKERS: Final = "/brokers/ids"
FEATURE: Final = "/feature"
ISR_CHANGES: Final = "/isr_change_notification"
LOG_DIR_EVENTS: Final = "/log_dir_event_notification"
#: Where brokers leave word; a new controller drops what it finds there.
NOTIFICATIONS: Final = (ISR_CHANGES, LOG_DIR_EVENTS)
DELETE_TOPICS: Final = "/admin/delete_topics"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
PREFERRED_ELECTION: Final = "/admin/preferred_replica_election"
CONFIG_CHANGES: Final = "/config/changes"
PRODUCER_IDS: Final = "/latest_producer_id_block"
#: What ``/feature`` holds when nobody has set a feature (``docs/reference/controller/zookeeper.md`` 3.10).
NO_FEATURES: Final = b'{"version":2,"status":1,"features":{}}'


def broker_path(broker_id: int) -> str:
    """Path of a broker's registration."""
    return f"{BROKERS}/{broker_id}"


def encode_registration(registration: Registration) -> bytes:
    """Data of a registration. It is this process that reads it again: the JSON is ours, not Kafka's."""
    return msgspec.json.encode(registration)


def read_registrations(records: RecordTree, session: int, *, watch: bool) -> tuple[Registration, ...]:
    """All registrations, by broker id, each with the czxid of its record as broker epoch. ``watch`` arms one watch on
    their coming and going and one on the content of each."""
    found = []
    for name in sorted(records.children(session, BROKERS, watch=watch), key=int):
        data, stat = records.get(session, f"{BROKERS}/{name}", watch=watch)
        found.append(replace(msgspec.json.decode(data, type=Registration), broker_epoch=stat.czxid))
    return tuple(found)
