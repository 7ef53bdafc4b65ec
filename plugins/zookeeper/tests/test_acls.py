"""ACLs of created znodes, and the audit of open ones."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from uuid import uuid4

import pytest
from kazoo.security import ACL, ANYONE_ID_UNSAFE, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, Id, Permissions
from kframe_zookeeper.live import audit as audits
from kframe_zookeeper.live.audit import Exposed, audit, find_exposed
from kframe_zookeeper.session.client import ensure_chroot
from kframe_zookeeper.session.settings import ConnectSettings, SaslLogin, settings_of_url
from kframe_zookeeper.store.store import ZooKeeperStore
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.acls import CREATOR_AND_READERS, CREATOR_ONLY, OPEN, acl_of
from kframe_zookeeper.znodes.brokers import encode_broker

from kframe.model.admin import ConfigChange, ConfigOperation, NewTopic
from kframe.model.events import AlterConfigsRequested, ProducerIdsRequested
from kframe.snapshot.instances import Instance
from kframe.testing.clusters import registration
from kframe.testing.store_fixture import FIRST_ID
from kframe.testing.waiting import wait_until
from verification.zookeeper.servers import ServerHandle
from verification.zookeeper.sessions import started
from verification.zookeeper.trees import read_tree
from verification.zookeeper.victims import build, settle

KAFKA = Id("sasl", "kafka")
ANYONE_WRITES = ACL(Permissions.WRITE, ANYONE_ID_UNSAFE)


@pytest.mark.parametrize(
    "path, acl",
    [
        ("/controller", CREATOR_AND_READERS),
        ("/brokers/topics/t/partitions/0/state", CREATOR_AND_READERS),
        ("/config/topics/t", CREATOR_AND_READERS),
        ("/config", CREATOR_AND_READERS),
        ("/config/users", CREATOR_ONLY),
        ("/config/users/u", CREATOR_ONLY),
        ("/config/brokers/<default>", CREATOR_ONLY),
        ("/config/usersmore", CREATOR_AND_READERS),
        ("/delegation_token/tokens/x", CREATOR_ONLY),
        ("/delegation_token/token_changes", CREATOR_AND_READERS),
        ("/kframe/instances/1000", CREATOR_AND_READERS),
        ("/consumers", OPEN),
        ("/consumers/g", OPEN),
    ],
)
def test_acl_of_a_path(path: str, acl: tuple[ACL, ...]) -> None:
    assert acl_of(path, secure=True) == acl
    assert acl_of(path, secure=False) == OPEN


def test_publicly_writable_and_secret_readable_nodes_are_exposed() -> None:
    assert find_exposed(
        {
            "/brokers": OPEN,
            "/admin": [ANYONE_WRITES, ACL(Permissions.ADMIN, KAFKA)],
            "/controller": CREATOR_AND_READERS,
            "/config/users": [*CREATOR_ONLY, *READ_ACL_UNSAFE],
            "/config/topics": READ_ACL_UNSAFE,
            "/feature": [ACL(Permissions.WRITE, KAFKA)],
            "/migration": [],
        }
    ) == (Exposed("/admin", True), Exposed("/brokers", True), Exposed("/config/users", False))


#: Created by Kafka 3.9 ``ZkData.defaultAcls`` if the brokers log in as kafka.
SECRET = [ACL(Permissions.ALL, KAFKA)]
KAFKAS = [*SECRET, *READ_ACL_UNSAFE]


@pytest.fixture(scope="module")
def whole(sasl_zookeeper: ServerHandle) -> ConnectSettings:
    """A secured cluster. A controller has created every kind of node that it creates.

    Workers that steal tests from each other may set it up again on the same server.
    """
    settings = replace(
        settings_of_url(f"zookeeper://{sasl_zookeeper.address}/created-{uuid4().hex}"),
        secure_acl=True,
        sasl=SaslLogin("kafka", "its secret"),
        create_chroot=True,
    )
    store = ZooKeeperStore(settings)
    controller, loop = build(FIRST_ID, store)
    store.register_instance(Instance.of_this_process(1000))
    controller.open()
    loop.start()
    with started(settings) as client:
        for broker in (1, 2):
            client.create(f"/brokers/ids/{broker}", encode_broker(registration(broker), 0), KAFKAS)
        wait_until(lambda: controller.status().gauges["ActiveBrokerCount"] == 2)
        for topic, replicas in (("kept", (1, 2)), ("marked", (1, 2))):
            controller.create_topics([NewTopic(topic, assignments=((0, replicas), (1, replicas)))]).result(20)
        change = ConfigChange("kept", ((ConfigOperation.SET, "retention.ms", "5"),))
        everywhere = ConfigChange(None, ((ConfigOperation.SET, "unclean.leader.election.enable", "false"),))
        controller.submit(partial(AlterConfigsRequested, (change,), False, False)).result(20)
        controller.submit(partial(AlterConfigsRequested, (everywhere,), False, False)).result(20)
        epoch = client.exists("/brokers/ids/1").czxid
        controller.submit(partial(ProducerIdsRequested, 1, epoch)).result(20)
        client.delete("/brokers/ids/2")
        wait_until(lambda: controller.status().gauges["ActiveBrokerCount"] == 1)
        # Broker 2 is offline, so the deletion mark stays.
        controller.delete_topics(["marked"], timeout_ms=0).result(20)
        settle(controller)
        controller.stop()
    return settings


def test_controller_creates_znodes_with_kafkas_acls(whole: ConnectSettings) -> None:
    with started(whole) as client:
        acls_by_path = {path or "/": client.get_acls(path or "/")[0] for path in read_tree(client)}
    secret = {path for path in acls_by_path if path.startswith(("/config/users", "/config/brokers"))}
    assert {
        path: acl for path, acl in acls_by_path.items() if path not in {*secret, "/consumers"} and acl != KAFKAS
    } == {}
    assert {path: acl for path, acl in acls_by_path.items() if path in secret and acl != SECRET} == {}
    assert acls_by_path["/consumers"] == OPEN_ACL_UNSAFE
    assert {
        "/",
        "/controller_epoch",
        "/feature",
        "/latest_producer_id_block",
        "/brokers/topics/kept/partitions/1/state",
        "/config/topics/kept",
        "/config/brokers/<default>",
        "/config/changes/config_change_0000000000",
        "/admin/delete_topics/marked",
        "/kframe/instances",
    } <= acls_by_path.keys()


class TestAudit:
    def test_audit_logs_all_open_znodes_in_a_single_warning(
        self, zookeeper: ServerHandle, caplog: pytest.LogCaptureFixture
    ) -> None:
        settings = settings_of_url(f"zookeeper://{zookeeper.address}/open-acls")
        ensure_chroot(settings)
        with started(settings) as client, caplog.at_level(logging.WARNING, "kframe.zookeeper"):
            assert audit(client) == (Exposed("/", True),)
            caplog.clear()
            for path in paths.PERSISTENT:
                client.ensure_path(path)
            exposed = audit(client)
        assert Exposed("/brokers", True) in exposed
        assert Exposed("/config/users", True) in exposed
        assert paths.CONSUMERS not in {entry.path for entry in exposed}
        assert len([entry for entry in caplog.messages if "any ZooKeeper client may change" in entry]) == 1

    def test_audit_accepts_kafkas_acls(self, whole: ConnectSettings, caplog: pytest.LogCaptureFixture) -> None:
        with started(whole) as client, caplog.at_level(logging.WARNING, "kframe.zookeeper"):
            assert audit(client) == ()
        assert caplog.messages == []

    @pytest.mark.parametrize(
        "path",
        [
            "/",
            "/controller_epoch",
            "/brokers/topics/kept",
            "/brokers/topics/kept/partitions/0/state",
            "/admin",
            "/config/topics/kept",
            "/admin/reassign_partitions",
            "/feature",
            "/latest_producer_id_block",
            "/kframe",
            "/kframe/instances",
            "/kframe/instances/1000",
        ],
    )
    def test_audit_reports_an_open_znode(self, whole: ConnectSettings, path: str) -> None:
        with started(whole) as client:
            if not client.exists(path):
                client.create(path, b"", SECRET)
            before, _ = client.get_acls(path)
            try:
                client.set_acls(path, [*before, ANYONE_WRITES])
                assert audit(client) == (Exposed(path, True),)
            finally:
                client.set_acls(path, before)
                if path in ("/admin/reassign_partitions", "/kframe/instances/1000"):
                    client.delete(path)

    def test_audit_samples_topics(self, whole: ConnectSettings, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(audits, "TOPICS_MAX", 1)
        with started(whole) as client:
            for topic in ("kept", "marked"):
                client.set_acls(f"/brokers/topics/{topic}", [*KAFKAS, ANYONE_WRITES])
            try:
                assert audit(client) == (Exposed("/brokers/topics/kept", True),)
            finally:
                for topic in ("kept", "marked"):
                    client.set_acls(f"/brokers/topics/{topic}", KAFKAS)
