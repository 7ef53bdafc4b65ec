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
#: Parents of the notifications of brokers; a new controller deletes existing notifications.
NOTIFICATIONS: Final = (ISR_CHANGES, LOG_DIR_EVENTS)
DELETE_TOPICS: Final = "/admin/delete_topics"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
PREFERRED_ELECTION: Final = "/admin/preferred_replica_election"
CONFIG_CHANGES: Final = "/config/changes"
PRODUCER_IDS: Final = "/latest_producer_id_block"
#: Content of ``/feature`` while no feature is set (``docs/reference/controller/zookeeper.md`` 3.10).
NO_FEATURES: Final = b'{"version":2,"status":1,"features":{}}'


def broker_path(broker_id: int) -> str:
    """Path of a broker's registration."""
    return f"{BROKERS}/{broker_id}"


def encode_registration(registration: Registration) -> bytes:
    """Data of a registration. Only this process reads it, so the JSON is not Kafka's."""
    return msgspec.json.encode(registration)


def read_registrations(records: RecordTree, session: int, *, watch: bool) -> tuple[Registration, ...]:
    """All registrations, by broker id, each with the czxid of its record as broker epoch. ``watch`` arms one watch on
    the children and one on the content of each registration."""
    registrations = []
    for name in sorted(records.children(session, BROKERS, watch=watch), key=int):
        data, stat = records.get(session, f"{BROKERS}/{name}", watch=watch)
        registrations.append(replace(msgspec.json.decode(data, type=Registration), broker_epoch=stat.czxid))
    return tuple(registrations)
