"""Raw records are read through the controller's store: in memory, and in a real ZooKeeper."""

from __future__ import annotations

from contextlib import closing

import pytest
from kframe_kafka_wire.records.acls import Acl, ResourcePattern, encode_acls, read_acls, update_acls
from kframe_kafka_wire.records.credentials import make_credential, scram_lookup
from kframe_kafka_wire.records.store import (
    Records,
    RecordWriter,
    change_settings,
    cluster_id,
    decode_record,
    settings_of_user,
)
from kframe_zookeeper.store.store import open_store

from kframe.embedded import MemoryEnsemble
from kframe.plugin.server import AclOperation, AclResourceType, PatternType
from kframe.testing.clusters import cluster_of, healthy
from verification.kafka_wire.served import user_record
from verification.zookeeper.servers import ServerHandle
from verification.zookeeper.sessions import session


def test_records_in_memory() -> None:
    ensemble = MemoryEnsemble.from_cluster(cluster_of({"t": [healthy(1)]}, (1,)))
    store = ensemble.connect()
    store.open(lambda _event: None)
    assert isinstance(store, Records)
    assert "1" in store.read_record_names("/brokers/ids")
    assert store.read_record("/brokers/ids/1") is not None
    assert store.read_record("/no/such") is None
    assert store.read_record_names("/no/such") == ()
    _written_and_deleted(store)


def _written_and_deleted(store: object) -> None:
    """Check the guarantees of RecordWriter on any store."""
    assert isinstance(store, RecordWriter)
    assert isinstance(store, Records)
    path = "/new/parent/record"
    assert store.read_versioned_record(path) is None
    assert not store.write_record(path, b"a", 0)  # There is no record to replace.
    assert store.write_record(path, b"a", None)
    assert not store.write_record(path, b"b", None)  # The record exists already.
    assert store.read_versioned_record(path) == (b"a", 0)
    assert not store.write_record(path, b"b", 7)
    assert store.write_record(path, b"b", 0)
    assert store.read_versioned_record(path) == (b"b", 1)
    parent = store.read_versioned_record("/new/parent")
    assert parent is not None
    assert not store.delete_record("/new/parent", parent[1])  # The record has a child.
    assert not store.delete_record(path, 0)
    assert store.delete_record(path, 1)
    assert not store.delete_record(path, 1)
    for data in (b"x", b"y"):
        store.append_record("/changes/change_", data)
    assert [store.read_record(f"/changes/{name}") for name in sorted(store.read_record_names("/changes"))] == [
        b"x",
        b"y",
    ]


def test_records_in_zookeeper(zookeeper: ServerHandle) -> None:
    store = open_store(f"zookeeper://{zookeeper.address}/records")
    with session(zookeeper.address) as root:
        root.create("/records")
    with closing(store), session(f"{zookeeper.address}/records") as client:
        acl = b'{"version":1,"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Read","host":"*"}]}'
        for path, data in {
            "/cluster/id": b'{"version":"1","id":"the-id"}',
            "/config/users/carol": user_record("SCRAM-SHA-256", "pencil").encode(),
            "/kafka-acl/Topic/t": acl,
            "/kafka-acl-extended/prefixed/Topic/u-": acl,
        }.items():
            client.create(path, data, makepath=True)
        store.open(lambda _event: None)
        assert isinstance(store, Records)
        assert cluster_id(store) == "the-id"
        known = make_credential("SCRAM-SHA-256", "pencil", b"some-salt")
        assert scram_lookup(store)("SCRAM-SHA-256", "carol") == known
        assert scram_lookup(store)("SCRAM-SHA-256", "unknown") is None
        change_settings(store, "users/new%20one", lambda _: {"SCRAM-SHA-256": "x"})
        assert settings_of_user(store, "new one") == {"SCRAM-SHA-256": "x"}
        (name,) = client.get_children("/config/changes")
        assert client.get(f"/config/changes/{name}")[0] == b'{"version":2,"entity_path":"users/new%20one"}'
        _written_and_deleted(store)
        added = Acl("User:b", allow=True, operation=AclOperation.WRITE, host="*")
        update_acls(
            store, ResourcePattern(AclResourceType.TOPIC, PatternType.LITERAL, "new"), lambda acls: acls | {added}
        )
        assert client.get("/kafka-acl/Topic/new")[0] == encode_acls({added})
        (change,) = client.get_children("/kafka-acl-changes")
        assert (change, client.get(f"/kafka-acl-changes/{change}")[0]) == ("acl_changes_0000000000", b"TOPIC:new")
        table = read_acls(store)
        assert [entry.operation for entry in table.entries_of(AclResourceType.TOPIC, "t")] == [AclOperation.READ]
        assert [entry.principal for entry in table.entries_of(AclResourceType.TOPIC, "u-1")] == ["User:a"]


@pytest.mark.parametrize("data", [None, b"", b"[]", b"no json", b"\xff", b"[" * 100_000])
def test_malformed_record_is_empty(data: bytes | None) -> None:
    assert decode_record(data) == {}
