"""A live cluster in ZooKeeper as an operator reaches it: captured, looked at, told to elect another controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import parse_qsl

from kazoo.exceptions import KazooException
from msgspec import UNSET

from kframe.errors import ConfigError, ControllerFenced, StoreError, ZnodeError
from kframe.snapshot.files import Progress, ignore_progress
from kframe.snapshot.live import Resignation, Standing
from kframe.snapshot.snapshot import Snapshot
from kframe_zookeeper import paths
from kframe_zookeeper.acls import audit
from kframe_zookeeper.capture import Reader, Sifted, capture
from kframe_zookeeper.connect import make_client
from kframe_zookeeper.multiread import Node, read_children, read_nodes
from kframe_zookeeper.multiwrite import LOST, Writes, write_once
from kframe_zookeeper.requests import check, delete
from kframe_zookeeper.session import Session
from kframe_zookeeper.settings import KEYS, PREFIX, ConnectSettings, settings_of_config, settings_of_url
from kframe_zookeeper.store import ZooKeeperStore
from kframe_zookeeper.znodes import decode_controller, decode_controller_epoch, is_controller_only

#: Nodes open to the world that are told one by one.
WARNINGS_MOST: Final = 50


def open_cluster(url: str, config: Mapping[str, str]) -> ZooKeeperCluster:
    """The cluster that a URL names, reached as ``config`` (Kafka's keys) says. Raises ConfigError.

    All that stands in the URL wins: hosts, chroot and further keys.
    """
    plain, _, query = url.partition("?")
    place = settings_of_url(plain).connect_string
    if not config:
        return ZooKeeperCluster(settings_of_url(url))
    given = {name if name in KEYS else PREFIX + name: value for name, value in parse_qsl(query)}
    if any(name.endswith(".password") for name in given):
        raise ConfigError("ZooKeeper URL", "a password", "a properties file that has it")
    return ZooKeeperCluster(settings_of_config({**config, **given, "zookeeper.connect": place}))


class ZooKeeperCluster:
    """Implements ``kframe.snapshot.live.LiveCluster``."""

    def __init__(self, settings: ConnectSettings) -> None:
        self._settings = settings

    def store(self) -> ZooKeeperStore:
        """A store for one controller, not open yet."""
        return ZooKeeperStore(self._settings)

    def reader(self) -> ZooKeeperStore:
        """A store that creates nothing where it connects; see ``LiveCluster.reader``."""
        return ZooKeeperStore(self._settings, creates=False)

    def capture(self, progress: Progress = ignore_progress) -> Snapshot:
        """Read everything, write nothing; see ``capture.capture``."""
        with self._session() as session:
            return capture(session, self._name, progress)

    def standing(self, progress: Progress = ignore_progress, *, quick: bool = False) -> Standing:
        """Read once; see ``LiveCluster.standing``."""
        with self._session() as session:
            tree = Reader(session, self._name, progress).read(quick)
            warnings = _warnings(session)
        snapshot, broken = Sifted(tree, self._name).snapshot()
        holder = tree.nodes.get(paths.CONTROLLER)
        elected = None if holder is None else _elected_ms(holder)
        return Standing(
            snapshot.controller_id,
            snapshot.controller_epoch,
            elected,
            snapshot.cluster_id,
            tuple(one.broker_id for one in snapshot.brokers if one.registered),
            tree.listed if quick else len(snapshot.topics),
            None if quick else len(snapshot),
            broken,
            warnings,
        )

    def audit(self) -> tuple[str, ...]:
        """Look at the ACLs of what a controller writes; see ``acls.audit``."""
        with self._session() as session:
            return _warnings(session)

    def broker_ids(self) -> tuple[int, ...]:
        """See ``LiveCluster.broker_ids``; names that are no ids are left out, and controllers that are no brokers."""
        with self._session() as session:
            parent = session.client.chroot + paths.BROKER_IDS
            (names,) = read_children(session, [parent])
            ids = sorted(int(name) for name in names or () if name.isascii() and name.isdecimal())
            nodes = read_nodes(session, [f"{parent}/{one}" for one in ids])
        return tuple(
            one for one, node in zip(ids, nodes, strict=True) if node is None or not is_controller_only(node.data)
        )

    def depose(self, controller_id: int | None = None) -> Resignation:
        """Delete ``/controller`` as it stands, under the controller epoch as it stands; see ``LiveCluster.depose``."""
        with self._session() as session:
            root = session.client.chroot
            epoch, holder = read_nodes(session, [root + paths.CONTROLLER_EPOCH, root + paths.CONTROLLER])
            if epoch is None or holder is None:
                raise ControllerFenced("there is no controller to resign")
            try:
                found = Resignation(decode_controller(holder.data).brokerid, decode_controller_epoch(epoch.data))
            except ZnodeError as error:
                raise StoreError(f"who is controller cannot be read: {error}") from error
            if controller_id not in (None, found.controller_id):
                raise ControllerFenced(f"broker {found.controller_id} is controller, not {controller_id}")
            guard = check(root + paths.CONTROLLER_EPOCH, epoch.version)
            write = Writes.of([[delete(root + paths.CONTROLLER, holder.version)]])
            code = int(write_once(session, guard, write).code[0])
            if code == LOST:
                raise StoreError("the connection broke: whether the controller has lost the role is not known")
            if code:
                raise ControllerFenced("the controller has changed meanwhile; nothing was done")
        return found

    @property
    def _name(self) -> str:
        return f"zookeeper://{self._settings.connect_string}"

    @contextmanager
    def _session(self) -> Iterator[Session]:
        session = Session(make_client(self._settings))
        session.begin(self._settings.connection_timeout_ms / 1000)
        try:
            yield session
        except KazooException as error:
            raise StoreError(f"{self._name}: {error!r}") from error
        finally:
            session.close()


def _warnings(session: Session) -> tuple[str, ...]:
    exposed = audit(session.client)
    said = [f"anybody may {'change' if one.changeable else 'read'} {one.path}" for one in exposed[:WARNINGS_MOST]]
    return (*said, f"and {len(exposed) - len(said)} more") if len(exposed) > len(said) else tuple(said)


def _elected_ms(holder: Node) -> int | None:
    """When a controller was elected, if its record says so."""
    try:
        timestamp = decode_controller(holder.data).timestamp
    except ZnodeError:
        return None
    return int(timestamp) if timestamp is not UNSET and timestamp.isascii() and timestamp.isdecimal() else None
