"""Check that a chroot holds a Kafka cluster before anything is read or created below it.

Kafka's brokers create a missing chroot (3.9 ``KafkaServer.initZkClient``, ``KafkaZkClient.createChrootIfNecessary``): a
mistyped one becomes a second, empty cluster. kframe creates one only if ``kframe.create.chroot`` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from typing import Final

from kazoo.protocol.serialization import Exists

from kframe.plugin import ConfigError, StoreError
from kframe_zookeeper.bulk.nodes import read_children
from kframe_zookeeper.session.session import Session
from kframe_zookeeper.session.settings import ConnectSettings
from kframe_zookeeper.znodes import paths

#: A chroot holds a cluster if one of these exists. Brokers create all of them when they first start.
MARKS: Final = (paths.CLUSTER_ID, paths.BROKER_IDS, paths.TOPICS, paths.CONTROLLER_EPOCH)
#: Nodes near a wrong chroot that are checked for a cluster, and clusters that an error names.
_CANDIDATES_MAX: Final = 200
_SUGGESTIONS_MAX: Final = 3


def require_cluster(session: Session, settings: ConnectSettings) -> None:
    """Raise ConfigError, which names clusters nearby, unless the chroot exists and holds a cluster; StoreError if
    ZooKeeper does not answer."""
    chroot = settings.chroot
    if any(_exist(session, [chroot + mark for mark in MARKS])):
        return
    if any(_exist(session, [chroot or "/"])):
        problem = f"where {chroot or '/'} holds no cluster: there is none of {', '.join(MARKS)}"
    else:
        problem = f"where the chroot {chroot} does not exist"
    nearby = _clusters_near(session, chroot)
    named = f" (did you mean {' or '.join(nearby)}?)" if nearby else ""
    raise ConfigError(
        "config key zookeeper.connect",
        f"{settings.connect_string}, {problem}",
        f"the chroot of a Kafka cluster{named}; for a cluster whose brokers have not started yet, "
        "controller run --create-chroot creates it",
    )


def _clusters_near(session: Session, chroot: str) -> list[str]:
    """Chroots of clusters with the same parent, then at the root. The most similar name first."""
    parent = chroot.rpartition("/")[0]
    candidates = list(dict.fromkeys(_nearby(session, chroot)))[:_CANDIDATES_MAX]
    exist = _exist(session, [candidate.rstrip("/") + paths.BROKER_IDS for candidate in candidates])
    clusters = [candidate for candidate, exists in zip(candidates, exist, strict=True) if exists]
    clusters.sort(
        key=lambda path: (path.rpartition("/")[0] != parent, -SequenceMatcher(None, path, chroot).ratio(), path)
    )
    return clusters[:_SUGGESTIONS_MAX]


def _nearby(session: Session, chroot: str) -> Iterator[str]:
    parent = chroot.rpartition("/")[0] or "/"
    for path in dict.fromkeys((parent, "/")):
        yield path
        with suppress(StoreError):  # Its ACL may forbid the read.
            (names,) = read_children(session, [path])
            yield from (f"{path.rstrip('/')}/{name}" for name in sorted(names or ()))


def _exist(session: Session, node_paths: Sequence[str]) -> Iterable[bool]:
    """Whether each node exists, by its absolute path. No permission is needed to ask."""
    return [stat is not None for _, stat in session.ask([Exists(path, None) for path in node_paths])]
