"""Capture a live cluster, read its status, and make its controller resign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import parse_qsl

from kazoo.exceptions import KazooException

from kframe.plugin import ConfigError, ControllerFenced, StoreError, ZnodeError
from kframe.plugin.live import ClusterStatus, LiveCounts, Progress, Resignation, ignore_progress
from kframe.plugin.snapshot import Snapshot
from kframe.plugin.znodes import is_controller_only
from kframe_zookeeper.bulk.nodes import ReadNode, read_children, read_nodes
from kframe_zookeeper.bulk.writes import LOST, Writes, write_once
from kframe_zookeeper.live.audit import audit
from kframe_zookeeper.live.capture import ClusterReader, SnapshotConverter, capture
from kframe_zookeeper.live.status import counts_of, role_of
from kframe_zookeeper.loading.chroot import require_cluster
from kframe_zookeeper.role.instances import read_instances
from kframe_zookeeper.session.client import make_client
from kframe_zookeeper.session.requests import check, delete
from kframe_zookeeper.session.session import Session
from kframe_zookeeper.session.settings import KEYS, PREFIX, ConnectSettings, settings_of_config, settings_of_url
from kframe_zookeeper.store.store import ZooKeeperStore
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.brokers import decode_broker
from kframe_zookeeper.znodes.cluster import decode_controller, decode_controller_epoch

#: Nodes open to the world that ``status`` lists.
WARNINGS_MAX: Final = 50


def open_cluster(url: str, config: Mapping[str, str]) -> ZooKeeperCluster:
    """The cluster at a URL, with Kafka's keys from ``config``. Raises ConfigError.

    The URL has precedence over ``config``: hosts, chroot and further keys.
    """
    plain, _, query = url.partition("?")
    connect_string = settings_of_url(plain).connect_string
    if not config:
        return ZooKeeperCluster(settings_of_url(url))
    url_config = {name if name in KEYS else PREFIX + name: value for name, value in parse_qsl(query)}
    if any(name.endswith(".password") for name in url_config):
        raise ConfigError("ZooKeeper URL", "a password", "a properties file that has it")
    return ZooKeeperCluster(settings_of_config({**config, **url_config, "zookeeper.connect": connect_string}))


class ZooKeeperCluster:
    """Implements ``kframe.ports.live_cluster.LiveCluster``."""

    def __init__(self, settings: ConnectSettings) -> None:
        self._settings = settings

    def store(self) -> ZooKeeperStore:
        """A store for one controller. It is not open yet."""
        return ZooKeeperStore(self._settings)

    def reader(self) -> ZooKeeperStore:
        """A store that creates no znodes when it connects; see ``LiveCluster.reader``."""
        return ZooKeeperStore(self._settings, creates=False)

    def capture(self, progress: Progress = ignore_progress) -> Snapshot:
        """Read everything, write nothing. See ``capture.capture``."""
        with self._session() as session:
            return capture(session, self._name, progress)

    def status(self, progress: Progress = ignore_progress, *, quick: bool = False) -> ClusterStatus:
        """Read once; see ``LiveCluster.status``."""
        with self._session() as session:
            instances = read_instances(session)
            tree = ClusterReader(session, self._name, ignore_progress).read(quick=True)
            warnings = _warnings(session)
        snapshot, broken = SnapshotConverter(tree, self._name).snapshot()
        brokers = tuple(broker.broker_id for broker in snapshot.brokers if broker.registered)
        role = role_of(tree.nodes.get(paths.CONTROLLER), frozenset(brokers), instances)
        counts = None if quick else self._counts()
        known = {} if counts is None else counts.quarantined
        topics, partitions = (
            (tree.topic_count, None) if counts is None else (len(counts.cluster.topics), len(counts.cluster))
        )
        progress(partitions or 0, partitions or 0)
        return ClusterStatus(
            snapshot.controller_id,
            snapshot.controller_epoch,
            role.elected_ms,
            snapshot.cluster_id,
            brokers,
            topics,
            partitions,
            {path: reason for path, reason in broken.items() if path not in known},
            warnings,
            role.kind,
            role.instance,
            role.standbys,
            counts,
        )

    def audit(self) -> tuple[str, ...]:
        """Audit the ACLs of the nodes that a controller writes; see ``audit.audit``."""
        with self._session() as session:
            return _warnings(session)

    def broker_addresses(self) -> dict[int, str]:
        """See ``LiveCluster.broker_addresses``. Malformed ids and kframe's own registrations are left out."""
        with self._session() as session:
            parent = session.client.chroot + paths.BROKER_IDS
            (names,) = read_children(session, [parent])
            ids = sorted(int(name) for name in names or () if name.isascii() and name.isdecimal())
            nodes = read_nodes(session, [f"{parent}/{broker_id}" for broker_id in ids])
        return {
            broker_id: _addresses(broker_id, node)
            for broker_id, node in zip(ids, nodes, strict=True)
            if node is not None and not is_controller_only(node.data)
        }

    def depose(self, controller_id: int | None = None) -> Resignation:
        """Delete the present ``/controller`` unless another election happens meanwhile; see ``LiveCluster.depose``."""
        with self._session() as session:
            root = session.client.chroot
            epoch, holder = read_nodes(session, [root + paths.CONTROLLER_EPOCH, root + paths.CONTROLLER])
            if epoch is None or holder is None:
                raise ControllerFenced("there is no controller to resign")
            try:
                resignation = Resignation(decode_controller(holder.data).brokerid, decode_controller_epoch(epoch.data))
            except ZnodeError as error:
                raise StoreError(f"the controller cannot be read: {error}") from error
            if controller_id not in (None, resignation.controller_id):
                raise ControllerFenced(f"broker {resignation.controller_id} is controller, not {controller_id}")
            guard = check(root + paths.CONTROLLER_EPOCH, epoch.version)
            write = Writes.of([[delete(root + paths.CONTROLLER, holder.version)]])
            code = int(write_once(session, guard, write).code[0])
            if code == LOST:
                raise StoreError("the connection broke: whether the controller has lost the role is not known")
            if code:
                raise ControllerFenced("the controller has changed meanwhile; nothing was done")
        return resignation

    def _counts(self) -> LiveCounts:
        store = self.reader()
        store.open(lambda event: None)
        try:
            return counts_of(store)
        finally:
            store.close()

    @property
    def _name(self) -> str:
        return f"zookeeper://{self._settings.connect_string}"

    @contextmanager
    def _session(self) -> Iterator[Session]:
        session = Session(make_client(self._settings))
        session.begin(self._settings.connection_timeout_ms / 1000)
        try:
            if not self._settings.create_chroot:
                require_cluster(session, self._settings)
            yield session
        except KazooException as error:
            raise StoreError(f"{self._name}: {error!r}") from error
        finally:
            session.close()


def _warnings(session: Session) -> tuple[str, ...]:
    exposed = audit(session.client)
    warnings = [
        f"any client may {'change' if node.changeable else 'read'} {node.path}" for node in exposed[:WARNINGS_MAX]
    ]
    return (*warnings, f"and {len(exposed) - len(warnings)} more") if len(exposed) > len(warnings) else tuple(warnings)


def _addresses(broker_id: int, node: ReadNode) -> str:
    """The addresses in a broker's registration."""
    try:
        endpoints = decode_broker(str(broker_id), node.data, node.czxid).endpoints
    except ZnodeError as error:
        return f"an unknown address ({error})"
    return ", ".join(f"{endpoint.listener}://{endpoint.host}:{endpoint.port}" for endpoint in endpoints)
