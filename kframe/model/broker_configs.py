"""The settings of brokers that may be changed for all of them at once while they run, and which values they take (Kafka
3.9 ``DynamicBrokerConfig``). Names that are none of Kafka's are anybody's: plugins of brokers read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kframe.model.kafka_keys import KAFKA_KEYS
from kframe.model.topic_configs import TOPIC_CONFIGS
from kframe.model.value_checks import Fits, anything, boolean, int_from, long_from, number

#: Every such setting by Kafka's name, with the check of its values.
BROKER_CONFIGS: Final[Mapping[str, Fits]] = {
    "background.threads": int_from(1),
    "compression.gzip.level": TOPIC_CONFIGS["compression.gzip.level"],
    "compression.lz4.level": TOPIC_CONFIGS["compression.lz4.level"],
    "compression.type": TOPIC_CONFIGS["compression.type"],
    "compression.zstd.level": TOPIC_CONFIGS["compression.zstd.level"],
    "follower.replication.throttled.rate": long_from(0),
    "leader.replication.throttled.rate": long_from(0),
    "log.cleaner.backoff.ms": long_from(0),
    "log.cleaner.dedupe.buffer.size": long_from(),
    "log.cleaner.delete.retention.ms": long_from(0),
    "log.cleaner.io.buffer.load.factor": number,
    "log.cleaner.io.buffer.size": int_from(0),
    "log.cleaner.io.max.bytes.per.second": number,
    "log.cleaner.max.compaction.lag.ms": long_from(1),
    "log.cleaner.min.cleanable.ratio": TOPIC_CONFIGS["min.cleanable.dirty.ratio"],
    "log.cleaner.min.compaction.lag.ms": long_from(0),
    "log.cleaner.threads": int_from(0),
    "log.cleanup.policy": TOPIC_CONFIGS["cleanup.policy"],
    "log.flush.interval.messages": long_from(1),
    "log.flush.interval.ms": long_from(),
    "log.index.interval.bytes": int_from(0),
    "log.index.size.max.bytes": int_from(4),
    "log.local.retention.bytes": long_from(-2),
    "log.local.retention.ms": long_from(-2),
    "log.message.downconversion.enable": boolean,
    "log.message.timestamp.after.max.ms": long_from(0),
    "log.message.timestamp.before.max.ms": long_from(0),
    "log.message.timestamp.difference.max.ms": long_from(0),
    "log.message.timestamp.type": TOPIC_CONFIGS["message.timestamp.type"],
    "log.preallocate": boolean,
    "log.retention.bytes": long_from(),
    "log.retention.ms": long_from(),
    "log.roll.jitter.ms": long_from(),
    "log.roll.ms": long_from(),
    "log.segment.bytes": int_from(14),
    "log.segment.delete.delay.ms": long_from(0),
    "max.connection.creation.rate": int_from(0),
    "max.connections": int_from(0),
    "max.connections.per.ip": int_from(0),
    "max.connections.per.ip.overrides": anything,
    "message.max.bytes": int_from(0),
    "metric.reporters": anything,
    "min.insync.replicas": int_from(1),
    "num.io.threads": int_from(1),
    "num.network.threads": int_from(1),
    "num.recovery.threads.per.data.dir": int_from(1),
    "num.replica.fetchers": int_from(-(2**31)),
    "producer.id.expiration.ms": int_from(1),
    "remote.fetch.max.wait.ms": int_from(1),
    "remote.log.index.file.cache.total.size.bytes": long_from(1),
    "remote.log.manager.copy.max.bytes.per.second": long_from(1),
    "remote.log.manager.fetch.max.bytes.per.second": long_from(1),
    "replica.alter.log.dirs.io.max.bytes.per.second": long_from(0),
    "transaction.partition.verification.enable": boolean,
    "unclean.leader.election.enable": boolean,
}

#: Those that hold a list, with their defaults.
LIST_CONFIGS: Final[Mapping[str, str]] = {"log.cleanup.policy": "delete", "metric.reporters": ""}


#: What each broker has for itself.
_OF_ONE: Final = frozenset(
    [
        "advertised.listeners",
        "listener.security.protocol.map",
        "listeners",
        "principal.builder.class",
        "sasl.enabled.mechanisms",
        "sasl.jaas.config",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.principal.to.local.rules",
        "sasl.kerberos.service.name",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.mechanism.inter.broker.protocol",
        "ssl.cipher.suites",
        "ssl.client.auth",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.engine.factory.class",
        "ssl.key.password",
        "ssl.keymanager.algorithm",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    ]
)

#: What no broker takes while it runs.
_STATIC: Final = KAFKA_KEYS - BROKER_CONFIGS.keys() - _OF_ONE

#: What counts for one listener of a broker.
_OF_LISTENER: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")


def config_problem(config: Mapping[str, str]) -> str | None:
    """The first setting of ``config`` that Kafka would refuse for all brokers; None if there is none.

    Not looked at is what a broker checks against its own settings, such as a number of threads that more than doubles.
    """
    for name, value in config.items():
        listener = _OF_LISTENER.fullmatch(name)
        if name in _STATIC or name in _OF_ONE or (listener is not None and listener[1] in _OF_ONE):
            return name
        if name in BROKER_CONFIGS and not BROKER_CONFIGS[name](value):
            return name
    return None
