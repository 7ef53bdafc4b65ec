"""Symbolic names of values that are random or depend on offsets: ids, incarnations, directories, broker epochs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final
from uuid import NAMESPACE_OID, UUID, uuid5

from kframe.model.kafka_uuids import uuid_of_text, uuid_text
from kframe.model.kraft import directory_ids
from kframe.model.kraft.record_json import to_json
from kframe.model.kraft.record_versions import RecordAndVersion

RESERVED: Final = {
    "MIGRATING": directory_ids.MIGRATING,
    "UNASSIGNED": directory_ids.UNASSIGNED,
    "LOST": directory_ids.LOST,
}
#: The listener of the broker with id 0.
LISTENER, HOST, FIRST_PORT = "PLAINTEXT", "127.0.0.1", 9000
_SORTED: Final = ("eligibleLeaderReplicas", "lastKnownElr", "renewers")


class SymbolicNames:
    """Generates ids, and replaces them in records by the symbols of a trace."""

    def __init__(self, features: Mapping[str, list[int]]) -> None:
        """``features`` of a broker are shown as ``default``."""
        self.topics: dict[str, str] = {}
        """Symbols by id, in Kafka's text form."""
        self._uses: dict[str, int] = {}
        self._epochs: dict[tuple[int, int], str] = {}
        self._symbols: dict[str, str] = {uuid_text(value): name for name, value in RESERVED.items()}
        self._ids: dict[str, UUID] = dict(RESERVED)
        self._acls: dict[str, str] = {}
        self._incarnations: dict[str, str] = {}
        self._counter = count(1)
        self._features = features

    def new_id(self) -> UUID:
        """A unique id; the same in every run."""
        return uuid5(NAMESPACE_OID, str(next(self._counter)))

    def new_topic_id(self, _name: str) -> UUID:
        """The id of a new topic; its symbol follows with its record."""
        return self.new_id()

    def directory(self, symbol: str) -> UUID:
        """The id of a directory by its symbol, such as ``1.a``."""
        if symbol not in self._ids:
            self._ids[symbol] = self.new_id()
            self._symbols[uuid_text(self._ids[symbol])] = symbol
        return self._ids[symbol]

    def note_incarnation(self, incarnation: UUID, symbol: str) -> None:
        """Name a process."""
        self._incarnations[uuid_text(incarnation)] = symbol

    def topic_id(self, symbol: str) -> UUID:
        """The id of a topic by its symbol, such as ``t`` or ``t#2``; a new id for an unknown one."""
        for text, name in self.topics.items():
            if name == symbol:
                return uuid_of_text(text)
        topic_id = self.new_id()
        self.topics[uuid_text(topic_id)] = symbol
        return topic_id

    def topic(self, topic_id: UUID) -> str:
        """The symbol of a topic id."""
        return self.topics.get(uuid_text(topic_id), "unknown")

    def epochs(self) -> dict[str, int]:
        """The broker epochs by symbol."""
        return {symbol: epoch for (_, epoch), symbol in self._epochs.items()}

    def record(self, item: RecordAndVersion) -> dict[str, Any]:
        """A record in the form of a trace."""
        document = to_json(item.record, item.version)
        data = document["data"]
        self._name_broker_epoch(document["type"], data)
        if "topicId" in data:
            data["topicId"] = self._name_topic(data["topicId"], data.get("name"))
        if "incarnationId" in data:
            data["incarnationId"] = self._name_incarnation(document["type"], data["incarnationId"])
        for name in ("logDirs", "cordonedLogDirs"):
            if data.get(name):
                data[name] = sorted(map(self._name_directory, data[name]))
        if data.get("directories"):
            data["directories"] = list(map(self._name_directory, data["directories"]))
        for name in _SORTED:
            if data.get(name):
                data[name] = sorted(data[name])
        if document["type"] in ("ACCESS_CONTROL_ENTRY_RECORD", "REMOVE_ACCESS_CONTROL_ENTRY_RECORD"):
            data["id"] = self._acls.setdefault(data["id"], f"acl.{len(self._acls) + 1}")
        self._name_node(document["type"], data)
        return document

    def _name_node(self, kind: str, data: dict[str, Any]) -> None:
        """Replace the default listeners and features of a broker by ``default``."""
        if kind == "REGISTER_CONTROLLER_RECORD":
            del data["endPoints"]
        if "features" in data:
            data["features"] = {
                feature["name"]: [feature["minSupportedVersion"], feature["maxSupportedVersion"]]
                for feature in sorted(data["features"], key=lambda feature: str(feature["name"]))
            }
        if kind == "REGISTER_BROKER_RECORD":
            if data["features"] == dict(self._features):
                data["features"] = "default"
            if data["endPoints"] == _default_endpoints(data["brokerId"]):
                data["endPoints"] = "default"

    def _name_broker_epoch(self, kind: str, data: dict[str, Any]) -> None:
        broker = data.get("brokerId", data.get("id"))
        if data.get("brokerEpoch", -1) >= 0:
            data["brokerEpoch"] = self.broker_epoch(broker, data["brokerEpoch"])
        elif kind in ("FENCE_BROKER_RECORD", "UNFENCE_BROKER_RECORD"):
            data["epoch"] = self.broker_epoch(broker, data["epoch"])

    def broker_epoch(self, broker: Any, epoch: int) -> str:
        """The symbol of a broker epoch."""
        if (broker, epoch) not in self._epochs:
            self._epochs[broker, epoch] = f"{broker}.{1 + sum(known == broker for known, _ in self._epochs)}"
        return self._epochs[broker, epoch]

    def _name_topic(self, text: str, name: str | None) -> str:
        if text not in self.topics and name is not None:
            uses = self._uses[name] = self._uses.get(name, 0) + 1
            self.topics[text] = name if uses == 1 else f"{name}#{uses}"
        return self.topics.get(text, "unknown")

    def incarnation(self, incarnation: UUID) -> str:
        """The symbol of a broker's process."""
        return self._incarnations.get(uuid_text(incarnation), "unknown")

    def directory_symbol(self, directory: UUID) -> str:
        """The symbol of a directory."""
        return self._name_directory(uuid_text(directory))

    def _name_incarnation(self, kind: str, text: str) -> str:
        if kind == "REGISTER_CONTROLLER_RECORD" and text not in self._incarnations:
            controllers = sum(symbol.startswith("controller.") for symbol in self._incarnations.values())
            self._incarnations[text] = f"controller.{controllers + 1}"
        return self._incarnations.get(text, "unknown")

    def _name_directory(self, text: str) -> str:
        return self._symbols.get(text, "unknown")

    def replace_ids(self, message: str) -> str:
        """A message with symbols in place of ids."""
        for table in (self.topics, self._incarnations, self._symbols, self._acls):
            for text, symbol in table.items():
                message = message.replace(text, symbol)
        return message


def _default_endpoints(broker_id: int) -> list[dict[str, Any]]:
    """The listener that every broker of a scenario registers; nothing listens there."""
    return [{"name": LISTENER, "host": HOST, "port": FIRST_PORT + broker_id, "securityProtocol": 0}]


def canonical_order(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The records of a batch; runs of one type whose order depends on hashing in Kafka are sorted."""
    run: list[dict[str, Any]] = []
    for record in records:
        if run and (run[-1]["type"] != record["type"] or record["type"] not in _RUN_KEYS):
            yield from _in_order(run)
            run = []
        run.append(record)
    yield from _in_order(run)


def _in_order(run: list[dict[str, Any]]) -> list[dict[str, Any]]:
    keys = _RUN_KEYS.get(run[0]["type"]) if run else None
    if keys is None:
        return run
    return sorted(
        run,
        key=lambda record: tuple(
            str(record["data"][key]) if isinstance(record["data"][key], list) else record["data"][key] for key in keys
        ),
    )


#: The fields by which a run of each type of record is sorted.
_RUN_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "PARTITION_CHANGE_RECORD": ("topicId", "partitionId"),
    "PARTITION_RECORD": ("topicId", "partitionId"),
    "CONFIG_RECORD": ("resourceType", "resourceName", "name"),
    "REMOVE_TOPIC_RECORD": ("topicId",),
    "CLEAR_ELR_RECORD": ("topicName",),
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": ("id",),
    "CLIENT_QUOTA_RECORD": ("entity", "key"),
    "ACCESS_CONTROL_ENTRY_RECORD": ("id",),
}
