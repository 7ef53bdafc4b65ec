"""A controller by the keys of Kafka's ``server.properties``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kframe_kafka_wire.listeners.identity import ADVERTISED, LISTENERS, PROTOCOL_MAP, PROTOCOLS, endpoints_of, reachable

from kframe.plugin import ConfigError
from kframe.plugin.cluster import Endpoint
from kframe.plugin.kraft import control, directory_ids
from kframe.plugin.kraft_controller import BROKER_CONFIG_KEYS, KraftSettings, type_problem
from kframe.plugin.settings import INT64_MAX, boolean, text, whole
from kframe_kraft.log import LogSettings, RetentionSettings
from kframe_kraft.quorum import Voters
from kframe_kraft.server.key_values import value_of
from kframe_kraft.server.node import NodeSettings
from kframe_kraft.server.snapshotting import SnapshotSettings

ROLES: Final = "process.roles"
NODE_ID: Final = "node.id"
BROKER_ID: Final = "broker.id"
QUORUM_VOTERS: Final = "controller.quorum.voters"
CONTROLLER_LISTENERS: Final = "controller.listener.names"
_VOTER: Final = re.compile(r"(?P<id>[0-9]{1,10})@(?P<host>\[[^\]]+\]|[^:@\s]+):(?P<port>[0-9]{1,5})")
#: Whole numbers with their least and greatest value (Kafka 4.4 ``KRaftConfigs`` and others).
_NUMBERS: Final = {
    NODE_ID: (0, 2**31 - 1),
    "broker.session.timeout.ms": (1, 2**31 - 1),
    "controller.quota.window.num": (1, 2**31 - 1),
    "controller.quota.window.size.seconds": (1, 2**31 - 1),
    "default.replication.factor": (1, 2**15 - 1),
    "leader.imbalance.check.interval.seconds": (1, INT64_MAX),
    "metadata.log.max.record.bytes.between.snapshots": (1, INT64_MAX),
    "metadata.log.max.snapshot.interval.ms": (0, INT64_MAX),
    "metadata.log.segment.bytes": (8 * 2**20, 2**31 - 1),
    "metadata.log.segment.ms": (0, INT64_MAX),
    "metadata.max.idle.interval.ms": (0, 2**31 - 1),
    "metadata.max.retention.bytes": (-1, INT64_MAX),
    "metadata.max.retention.ms": (-1, INT64_MAX),
    "min.insync.replicas": (1, 2**31 - 1),
    "num.partitions": (1, 2**31 - 1),
    "unclean.leader.election.interval.ms": (1, INT64_MAX),
}
#: kframe's own keys; the default of the first departs from Kafka.
ENDS_SESSIONS: Final = "kframe.controlled.shutdown.ends.session"
STRICT_ELR: Final = "kframe.elr.strict"
_SWITCHES: Final = ("auto.leader.rebalance.enable", "unclean.leader.election.enable")


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """``directory`` is ``metadata.log.dir``, and one of all ``directories``. ``bound`` are the controller's listeners.

    ``config`` has all keys, for the sockets.
    """

    node_id: int
    directory: Path
    directories: tuple[Path, ...]
    bound: tuple[Endpoint, ...]
    settings: NodeSettings
    kraft: KraftSettings
    config: Mapping[str, str]


def node_config(given: Mapping[str, str]) -> NodeConfig:
    """The node of a configuration. Raises ConfigError, also for a node that is no controller alone."""
    roles = {role.strip() for role in text(f"config key {ROLES}", given.get(ROLES, "")).split(",")}
    if roles != {"controller"}:
        raise ConfigError(f"config key {ROLES}", repr(given.get(ROLES)), "controller: kframe is no broker")
    names = text(f"config key {CONTROLLER_LISTENERS}", given.get(CONTROLLER_LISTENERS, ""))
    listeners = [name.strip().upper() for name in names.split(",")]
    protocols = [*PROTOCOLS, *(listener for listener in listeners if listener not in PROTOCOLS)]
    default_map = ",".join(f"{name}:{name if name in PROTOCOLS else PROTOCOLS[0]}" for name in protocols)
    config = {PROTOCOL_MAP: default_map, **given}
    number = {
        key: whole(least, greatest)(f"config key {key}", value_of(given, key))
        for key, (least, greatest) in _NUMBERS.items()
    }
    switch = {key: boolean(f"config key {key}", value_of(given, key)) for key in _SWITCHES}
    ends_sessions = boolean(f"config key {ENDS_SESSIONS}", given.get(ENDS_SESSIONS, "true"))
    strict = boolean(f"config key {STRICT_ELR}", given.get(STRICT_ELR, "false"))
    for key, value in given.items():
        if key in BROKER_CONFIG_KEYS and type_problem(BROKER_CONFIG_KEYS[key].type, key, value) is not None:
            raise ConfigError(f"config key {key}", repr(value), f"a value of type {BROKER_CONFIG_KEYS[key].type.name}")
    directories = _directories(given)
    bound = tuple(endpoints_of(config, LISTENERS))
    if not bound or any(endpoint.listener not in listeners for endpoint in bound):
        where = f"config key {LISTENERS}"
        raise ConfigError(where, given.get(LISTENERS, "nothing"), f"listeners of {CONTROLLER_LISTENERS} alone")
    settings = NodeSettings(
        _advertised(config, bound),
        _static_voters(given, listeners[0]),
        LogSettings(number["metadata.log.segment.bytes"], number["metadata.log.segment.ms"]),
        SnapshotSettings(
            number["metadata.log.max.record.bytes.between.snapshots"], number["metadata.log.max.snapshot.interval.ms"]
        ),
        RetentionSettings(number["metadata.max.retention.bytes"], number["metadata.max.retention.ms"]),
        number["broker.session.timeout.ms"] * 1_000_000,
        number["metadata.max.idle.interval.ms"],
        number["leader.imbalance.check.interval.seconds"] * 1000 if switch["auto.leader.rebalance.enable"] else 0,
        number["unclean.leader.election.interval.ms"],
        PROTOCOLS.index(bound[0].security_protocol),
        number["controller.quota.window.num"] * number["controller.quota.window.size.seconds"],
    )
    kraft = KraftSettings(
        node_id=number[NODE_ID],
        min_insync_replicas=number["min.insync.replicas"],
        unclean_leader_election_enable=switch["unclean.leader.election.enable"],
        default_replication_factor=number["default.replication.factor"],
        num_partitions=number["num.partitions"],
        ends_sessions_at_shutdown=ends_sessions,
        strict=strict,
        static_configs={BROKER_ID: given[NODE_ID], **given},  # As Kafka's AbstractKafkaConfig.populateSynonyms.
    )
    return NodeConfig(number[NODE_ID], directories[0], directories, bound, settings, kraft, config)


def _directories(given: Mapping[str, str]) -> tuple[Path, ...]:
    """``metadata.log.dir`` first, then those of ``log.dirs`` or ``log.dir``."""
    names = given.get("log.dirs", "").strip() or given.get("log.dir", "").strip()
    log_dirs = [Path(name.strip()) for name in names.split(",") if name.strip()]
    metadata = given.get("metadata.log.dir", "").strip()
    directories = dict.fromkeys([*([Path(metadata)] if metadata else []), *log_dirs])
    if not directories:
        raise ConfigError("config key metadata.log.dir", "nothing, and no log.dirs", "a directory for the metadata log")
    return tuple(directories)


def _advertised(config: Mapping[str, str], bound: tuple[Endpoint, ...]) -> tuple[control.VoterEndpoint, ...]:
    """The controller's listeners as others are to reach them."""
    names = {endpoint.listener for endpoint in bound}
    advertised = list(endpoints_of(config, ADVERTISED)) if config.get(ADVERTISED, "").strip() else []
    by_name = {endpoint.listener: endpoint for endpoint in (*bound, *advertised) if endpoint.listener in names}
    for endpoint in by_name.values():
        if endpoint.port == 0:
            raise ConfigError(f"config key {LISTENERS}", f"{endpoint.listener} on port 0", "a port: the log records it")
    return tuple(
        control.VoterEndpoint(name=endpoint.listener, host=endpoint.host, port=endpoint.port)
        for endpoint in map(reachable, by_name.values())
    )


def _static_voters(given: Mapping[str, str], listener: str) -> Voters:
    """The voters of ``controller.quorum.voters``; none without the key."""
    members = []
    for entry in filter(None, (part.strip() for part in given.get(QUORUM_VOTERS, "").split(","))):
        match = _VOTER.fullmatch(entry)
        if match is None or int(match["port"]) > 65_535:
            raise ConfigError(f"config key {QUORUM_VOTERS}", repr(entry), "ID@HOST:PORT[,ID@HOST:PORT]...")
        endpoint = control.VoterEndpoint(name=listener, host=match["host"].strip("[]"), port=int(match["port"]))
        voter_id = int(match["id"])
        members.append(
            control.Voter(voter_id=voter_id, voter_directory_id=directory_ids.ZERO_UUID, endpoints=(endpoint,))
        )
    return Voters(tuple(members))
