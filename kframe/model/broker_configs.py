"""The dynamic cluster-wide broker settings, and the values that they accept (Kafka 3.9 ``DynamicBrokerConfig``).

Names that Kafka does not define are accepted: plugins of brokers read them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kframe.model.kafka_keys import KAFKA_KEYS
from kframe.model.topic_configs import TOPIC_CONFIGS, ConfigProblem
from kframe.model.value_checks import Check, anything, boolean, double, int_from, long_from

#: Every such setting by Kafka's name, with the check of its values.
BROKER_CONFIGS: Final[Mapping[str, Check]] = {
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
    "log.cleaner.io.buffer.load.factor": double(),
    "log.cleaner.io.buffer.size": int_from(0),
    "log.cleaner.io.max.bytes.per.second": double(),
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

#: Settings that hold a list, with their defaults.
LIST_CONFIGS: Final[Mapping[str, str]] = {"log.cleanup.policy": "delete", "metric.reporters": ""}


#: Settings that can only be changed per broker.
_PER_BROKER: Final = frozenset(
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

#: Settings that can only be changed per broker, and also per listener.
_OF_EACH_LISTENER: Final = frozenset(
    f"ssl.{key}"
    for key in (
        "key.password",
        "keystore.certificate.chain",
        "keystore.key",
        "keystore.location",
        "keystore.password",
        "keystore.type",
        "truststore.certificates",
        "truststore.location",
        "truststore.password",
        "truststore.type",
    )
)

#: Settings that no broker accepts while it runs.
_STATIC: Final = KAFKA_KEYS - BROKER_CONFIGS.keys() - _PER_BROKER

#: A setting of one listener of a broker.
_OF_LISTENER: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")


def config_problem(config: Mapping[str, str]) -> ConfigProblem | None:
    """The reason why Kafka would reject ``config`` for all brokers; None if Kafka accepts it.

    Checks against a broker's own settings are omitted, such as a number of threads that more than doubles. Source:
    Kafka 3.9 ``DynamicBrokerConfig.validateConfigs``, whose messages show Scala collections.
    """
    refusals = (
        ("Cannot update these configs dynamically: Set", _STATIC),
        (
            "These security configs can be dynamically updated only per-listener using the listener prefix: HashSet",
            _OF_EACH_LISTENER,
        ),
    )
    for message, refused in refusals:
        names = [name for name in config if name in refused]
        if names:
            return ConfigProblem(f"{message}({', '.join(names)})")
    for name, check in BROKER_CONFIGS.items():
        problem = check(name, config[name]) if name in config else None
        if problem is not None:
            return ConfigProblem(problem)
    names = [name for name in config if name in _PER_BROKER or _listener_setting(name) in _PER_BROKER]
    if names:
        message = "Cannot update these configs at default cluster level, broker id must be specified"
        return ConfigProblem(f"{message}: Set({', '.join(names)})")
    return None


def _listener_setting(name: str) -> str | None:
    """The setting that a name sets for one listener; None for a name without a listener prefix."""
    listener = _OF_LISTENER.fullmatch(name)
    return None if listener is None else listener[1]
