"""Who may do what to which node (``spec/zookeeper.md`` section 9), and the audit of what stands there already."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError

from kframe_zookeeper.paths import (
    CONSUMERS,
    PERSISTENT,
    PREFERRED_ELECTION,
    REASSIGN_PARTITIONS,
    SECURED,
    SENSITIVE,
    TOPICS,
    config_path,
    state_path,
    topic_path,
)

_log = logging.getLogger("kframe.zookeeper")

READ: Final = 1
WRITE: Final = 2
CREATE: Final = 4
DELETE: Final = 8
ADMIN: Final = 16
ALL: Final = 31
_CHANGE: Final = ALL & ~READ
#: Topics that the audit looks at; each costs three small requests.
TOPICS_MOST: Final = 1_000
#: Written by a controller where an operator has left them.
_LEFT: Final = (REASSIGN_PARTITIONS, PREFERRED_ELECTION)


class Permit(NamedTuple):
    """One entry of an ACL: which of the five permissions, to whom (kazoo: ``ACL(perms, Id(scheme, id))``)."""

    permissions: int
    scheme: str
    identity: str


OPEN: Final = (Permit(ALL, "world", "anyone"),)
#: ZooKeeper puts the identity of the connection in place of "auth".
CREATOR_ONLY: Final = (Permit(ALL, "auth", ""),)
CREATOR_AND_READERS: Final = (*CREATOR_ONLY, Permit(READ, "world", "anyone"))


def acl_of(path: str, secure: bool) -> tuple[Permit, ...]:
    """What Kafka creates ``path`` (below the chroot) with; ``secure`` is ``zookeeper.set.acl``."""
    if not secure or _is_below(path, CONSUMERS):
        return OPEN
    return CREATOR_ONLY if any(_is_below(path, root) for root in SENSITIVE) else CREATOR_AND_READERS


@dataclass(frozen=True, slots=True)
class Exposed:
    """A node that anybody who reaches ZooKeeper may change, or, where it holds secrets, read."""

    path: str
    changeable: bool


def find_exposed(acls: Mapping[str, Iterable[Permit]]) -> tuple[Exposed, ...]:
    """Which of these nodes are open to the world."""
    found = []
    for path, permits in sorted(acls.items()):
        given = 0
        for permit in permits:
            given |= permit.permissions if permit.scheme == "world" else 0
        if given & _CHANGE or (given & READ and any(_is_below(path, root) for root in SENSITIVE)):
            found.append(Exposed(path, bool(given & _CHANGE)))
    return tuple(found)


def audit(client: KazooClient) -> tuple[Exposed, ...]:
    """Look at the ACLs of what a controller writes, and warn of what is open to the world.

    The chroot is looked at, whose ACL says who may delete ``/controller``; every root; and as an ACL is not inherited,
    the nodes of topics, of up to TOPICS_MOST spread over all, unless their root is open anyway. One line of log,
    whatever is found; what is not there, or not for us to look at, is passed over. ``/consumers`` is open by design.
    Raises what kazoo raises when the connection fails.
    """
    acls = _read_acls(client, sorted({"/", *SECURED, *SENSITIVE, *PERSISTENT, *_LEFT} - {CONSUMERS}))
    exposed = find_exposed(acls)
    if TOPICS in acls and all(one.path != TOPICS for one in exposed):
        below = _read_acls(client, _nodes_of_topics(client))
        acls |= below
        exposed += find_exposed(below)
    if exposed:
        changeable = sum(one.changeable for one in exposed)
        named = ", ".join(one.path for one in exposed[:5]) + (", ..." if len(exposed) > 5 else "")
        _log.warning(
            "anybody who reaches ZooKeeper may change %d of %d nodes looked at and read %d that hold secrets (%s); "
            "zookeeper.set.acl and Kafka's zookeeper-security-migration close them",
            changeable, len(acls), len(exposed) - changeable, named,
        )  # fmt: skip
    return exposed


def _read_acls(client: KazooClient, wanted: Iterable[str]) -> dict[str, list[Permit]]:
    results = [(path, client.get_acls_async(path)) for path in wanted]
    acls = {}
    for path, result in results:
        with suppress(NoNodeError, NoAuthError):
            entries, _ = result.get()
            acls[path] = [Permit(entry.perms, entry.id.scheme, entry.id.id) for entry in entries]
    return acls


def _nodes_of_topics(client: KazooClient) -> Iterator[str]:
    """What is written of a topic by itself; the states of one partition stand for those of the others."""
    try:
        names = sorted(client.get_children(TOPICS))
    except (NoNodeError, NoAuthError):
        return
    for name in names[:: -(-len(names) // TOPICS_MOST) or 1]:
        yield from (topic_path(name), state_path(name, 0), config_path("topics", name))


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")
