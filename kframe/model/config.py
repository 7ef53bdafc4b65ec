"""Kafka's configuration keys that a controller reads: one table, from which all other uses derive."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from msgspec import Struct

from kframe.errors import ConfigError
from kframe.model.protocol import InterBrokerProtocol

#: The only cluster-wide broker setting that a running controller applies.
UNCLEAN: Final = "unclean.leader.election.enable"
#: Whether brokers have tiered storage.
REMOTE_STORAGE: Final = "remote.log.storage.system.enable"
#: Ids that the controller never assigns as replicas, although brokers may receive them in requests.
NEVER_REPLICAS: Final = "kframe.never.replicas"
#: Whether reassignments are checked more strictly than in Kafka.
STRICT_REASSIGNMENT: Final = "kframe.reassignment.strict"
#: Whether an operator must confirm the election of the last in-sync replica after a crash; Kafka elects it.
HOLD_LAST: Final = "kframe.last.replica.hold"
#: Whether a new controller reads from storage which ISR members restarted while there was no controller; Kafka does
#: not.
CHECK_AT_FAILOVER: Final = "kframe.failover.check.epochs"
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_TRUE_FALSE: Final = {"true": True, "false": False}


def boolean(where: str, value: object) -> bool:
    """Parse ``true`` or ``false``. Raises ConfigError."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in _TRUE_FALSE:
        return _TRUE_FALSE[value.strip().lower()]
    raise ConfigError(where, repr(value), "true or false")


def whole(min_value: int, max_value: int = 2**31 - 1) -> Callable[[str, object], int]:
    """A parser of whole numbers in this range. It raises ConfigError."""

    def read(where: str, value: object) -> int:
        expected = f"a whole number from {min_value} to {max_value}"
        if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not min_value <= value <= max_value:
            raise ConfigError(where, repr(value), expected)
        return value

    return read


def text(where: str, value: object) -> str:
    """Strip a text that must not be empty. Raises ConfigError."""
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(where, repr(value), "a text that is not empty")
    return value.strip()


def broker_ids(where: str, value: object) -> frozenset[int]:
    """Parse broker ids separated by commas; an empty text gives none. Raises ConfigError."""
    if not isinstance(value, str):
        raise ConfigError(where, repr(value), "broker ids with commas between them")
    read = whole(0)
    return frozenset(read(where, item) for item in value.split(",") if item.strip())


def one_of(*values: str) -> Callable[[str, object], str]:
    """A parser that accepts only these values. It raises ConfigError."""

    def read(where: str, value: object) -> str:
        if str(value) not in values:
            raise ConfigError(where, repr(value), " or ".join(values))
        return str(value)

    return read


def _protocol(where: str, value: object) -> InterBrokerProtocol:
    return InterBrokerProtocol.parse(value.strip() if isinstance(value, str) else str(value), where)


def nearest(name: str, known: Collection[str]) -> str:
    """A hint that names the known key closest to an unknown key."""
    import difflib  # Only a wrong name needs it.

    matches = difflib.get_close_matches(name, known, n=1)
    return f"{matches[0]!r} perhaps" if matches else "one of " + ", ".join(sorted(known))


class Key(Struct, frozen=True):
    """One configuration key. It has Kafka's spelling, the parser, the default, and the purpose."""

    name: str
    read: Callable[[str, object], Any]
    default: str
    doc: str


#: Every key that kframe reads. Names, defaults and meanings are those of Kafka 3.9, except ``kframe.*``
#: (``docs/explanation/safety.md``).
KEYS: Final[Mapping[str, Key]] = {
    key.name: key
    for key in (
        Key("auto.leader.rebalance.enable", boolean, "true", "Elect preferred replicas automatically."),
        Key("leader.imbalance.check.interval.seconds", whole(1), "300", "How often leadership imbalance is checked."),
        Key("leader.imbalance.per.broker.percentage", whole(0), "10", "Imbalance of a broker that is tolerated."),
        Key("unclean.leader.election.enable", boolean, "false", "Let a replica outside the ISR lead as a last resort."),
        Key("min.insync.replicas", whole(1), "1", "ISR size below which acks=all producers are refused."),
        Key("num.partitions", whole(1), "1", "Partitions of a topic that asks for the default."),
        Key("default.replication.factor", whole(1, 32_767), "1", "Replicas of a topic that asks for the default."),
        Key("delete.topic.enable", boolean, "true", "Whether topics can be deleted."),
        Key(REMOTE_STORAGE, boolean, "false", "Whether brokers have tiered storage, so that topics may use it."),
        Key("inter.broker.protocol.version", _protocol, "3.9", "The release whose rules all brokers follow."),
        Key(
            "inter.broker.listener.name",
            text,
            "PLAINTEXT",
            "Listener of the connections between brokers and controller.",
        ),
        Key(
            "reassignment.protocol",
            one_of("3.9", "0.8"),
            "3.9",
            "How partitions are reassigned: as in Kafka 3.9, or as in Kafka 0.8.",
        ),
        Key(
            "kframe.alter.partition.check.epochs",
            boolean,
            "true",
            "Refuse ISR members that were registered anew since the leader looked: they may have come back empty.",
        ),
        Key(
            "kframe.alter.partition.strict",
            boolean,
            "false",
            "Refuse AlterPartition from a broker that does not lead, and ISRs without it or with unassigned brokers.",
        ),
        Key(
            CHECK_AT_FAILOVER,
            boolean,
            "false",
            "At failover, members registered since an ISR was written leave it: they may have come back empty.",
        ),
        Key(
            STRICT_REASSIGNMENT,
            boolean,
            "false",
            "Reassignments keep an in-sync replica and a leader of each partition, and no deletion waits for one.",
        ),
        Key(
            HOLD_LAST,
            boolean,
            "false",
            "The last replica in sync leads after a crash of its broker only once an unclean election is asked for.",
        ),
        Key(
            "kframe.topic.id.restore",
            boolean,
            "true",
            "Write the id of a topic back when another client has stored the topic without it.",
        ),
        Key(
            NEVER_REPLICAS,
            broker_ids,
            "",
            "Ids of controllers that are no brokers, this one's and others': brokers never keep replicas there.",
        ),
        Key("request.timeout.ms", whole(1), "30000", "How long a broker may take to respond to a request."),
    )
}


class ControllerConfig:
    """Configuration of one controller: a value for every key of ``KEYS``, by Kafka's name."""

    def __init__(self, values: Mapping[str, object] | None = None, source: str = "config") -> None:
        """Read ``values``; ``source`` names their origin in errors.

        Raises ConfigError for an unknown key, with the nearest known key, and for an invalid value.
        """
        values = dict(values or {})
        for name in values:
            if name not in KEYS:
                raise ConfigError(source, f"unknown key {name!r}", nearest(name, KEYS))
        self.originals: Final = {name: str(value) for name, value in values.items()}
        """The configured values by key, as text, without defaults (Kafka ``AbstractConfig.originals``)."""
        self._values = {
            name: key.read(f"{source} key {name}", values.get(name, key.default)) for name, key in KEYS.items()
        }

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    @property
    def unclean_by_default(self) -> bool:
        """``unclean.leader.election.enable`` for topics that do not set it."""
        return bool(self._values["unclean.leader.election.enable"])

    @property
    def protocol(self) -> InterBrokerProtocol:
        """``inter.broker.protocol.version``."""
        protocol: InterBrokerProtocol = self._values["inter.broker.protocol.version"]
        return protocol
