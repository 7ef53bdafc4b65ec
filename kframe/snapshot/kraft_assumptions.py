"""What ``Snapshot.to_metadata`` assumes of a KRaft cluster for data that its source lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from uuid import UUID

from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.ids import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION, MetadataLevel
from kframe.model.kraft.levels import level_name
from kframe.model.kraft.records import BrokerFeature
from kframe.snapshot.content import SnapshotContent, brokers_text
from kframe.snapshot.facts import BrokerFacts

#: The features of a broker whose registration is unknown: every level.
_FEATURES: Final = tuple(
    BrokerFeature(name=name, min_supported_version=0, max_supported_version=2**15 - 1)
    for name in (
        METADATA_VERSION,
        KRAFT_VERSION,
        ELR_VERSION,
        "group.version",
        "transaction.version",
        "share.version",
        "streams.version",
    )
)
#: Begins the UUIDs of unknown ids, which no rule compares with another cluster's.
_ASSUMED_ID: Final = 0x6B6672616D65 << 80
_INCARNATION, _DIRECTORY, _TOPIC = (_ASSUMED_ID | kind << 64 for kind in (1, 2, 3))

#: What is assumed where a column is unknown.
_COLUMNS: Final = {
    "topics.topic_id": "ids are assumed; no election depends on them",
    "topics.configs": "the cluster's defaults apply to every topic",
    "partitions.leader_epoch": "taken as 0",
    "partitions.partition_epoch": "partition epochs are taken as 0",
    "partitions.leader_recovery_state": "taken as RECOVERED",
    "partitions.adding_replicas": "nothing is being reassigned",
    "partitions.elr": "taken as empty, with ELR off",
    "partitions.directories": "every log directory is online",
}
#: What is assumed where a dump of a log lacks a fact of the quorum.
_QUORUM_FACTS: Final = {
    "quorum.leader": "taken as none",
    "quorum.kraft_version": "taken as 0",
    "quorum.epoch": "taken as 0",
    "log.offset": "records are counted from 0",
}


def assumed_features(snapshot: SnapshotContent) -> Mapping[str, int]:
    """The finalized levels of a cluster whose levels are unknown: the latest, with ELR if the source lists ELRs."""
    elr = {} if snapshot.partitions.elr is None else {ELR_VERSION: 1}
    return {METADATA_VERSION: MetadataLevel.LATEST, **elr}


def assumed_registration(broker: BrokerFacts) -> BrokerRegistration | None:
    """The registration of a broker of which only some facts are known; None if it is known to be unregistered."""
    if broker.registered is False:
        return None
    return BrokerRegistration(
        broker_id=broker.broker_id,
        broker_epoch=broker.broker_epoch or 0,
        incarnation_id=UUID(int=_INCARNATION | broker.broker_id),
        features=_FEATURES,
        rack=broker.rack,
        fenced=not broker.registered,
        directories=(UUID(int=_DIRECTORY | broker.broker_id),),
    )


def assumed_topic_id(index: int) -> UUID:
    """The id of a topic that has none."""
    return UUID(int=_TOPIC | index)


def kraft_assumptions(snapshot: SnapshotContent) -> Iterator[str]:
    """The assumptions of ``Snapshot.to_metadata``, a sentence each."""
    facts = snapshot.kraft
    if facts is None or facts.features is None:
        features = assumed_features(snapshot)
        elr = "on" if features.get(ELR_VERSION) else "off"
        yield f"cluster.features unknown: metadata.version taken as {level_name(MetadataLevel.LATEST)}, ELR as {elr}"
    if facts is None or facts.records is None:
        yield "cluster.configs unknown: brokers have no dynamic configurations of their own"
    fenced = [broker.broker_id for broker in snapshot.brokers if broker.registered is None]
    if fenced:
        reason = snapshot.provenance.get("brokers.registered")
        yield f"brokers.registered unknown of {brokers_text(fenced)}{f' ({reason})' if reason else ''}: taken as fenced"
    if any(broker.registered and broker.registration is None for broker in snapshot.brokers):
        yield "brokers.registration unknown: active, with one log directory, supporting every feature level"
    for column in snapshot.unknown:
        if column in _COLUMNS:
            reason = snapshot.provenance.get(column)
            yield f"{column} unknown{f' ({reason})' if reason else ''}: {_COLUMNS[column]}"
    for column, taken in _QUORUM_FACTS.items():
        if column in snapshot.provenance:
            yield f"{column} unknown ({snapshot.provenance[column]}): {taken}"
    for column, note in snapshot.provenance.items():
        is_fact = column.startswith("partitions.") or column == "cluster.broker_default_configs"
        if is_fact and column not in snapshot.unknown and column not in _ABSENT_IN_KRAFT:
            yield f"{column}: {note}"


_ABSENT_IN_KRAFT: Final = ("partitions.controller_epoch",)
