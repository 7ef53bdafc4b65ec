"""A lagging server of the ensemble: its records and the watches of its session."""

from __future__ import annotations

from msgspec.structs import replace

from kframe.embedded.records import Change, RecordTree, WatchEvent


def fork(tree: RecordTree) -> RecordTree:
    """A copy of the current records with the same sessions and no watches."""
    copy = RecordTree()
    copy.zxid = tree.zxid
    copy._records = {path: replace(record, children=dict(record.children)) for path, record in tree._records.items()}
    copy._listeners = dict.fromkeys(tree._listeners, _ignore)
    return copy


def armed(tree: RecordTree, session: int) -> list[tuple[bool, str]]:
    """(of the children or not, path) of all watches of a session."""
    return [where for where, sessions in tree._watches.items() if session in sessions]


def arm(tree: RecordTree, session: int, path: str, of_children: bool) -> None:
    """Set a watch on a path, or on its children."""
    tree._arm(session, path, of_children=of_children)


def changed(before: RecordTree, now: RecordTree, path: str, of_children: bool) -> Change | None:
    """The event of a watch that was set in ``before``. None if there is no change."""
    old, new = before._records.get(path), now._records.get(path)
    if old is None:
        return None if new is None or of_children else Change.CREATED
    if new is None or new.czxid != old.czxid:
        return Change.DELETED
    if of_children:
        same = new.children == old.children and new.children_created == old.children_created
        return None if same else Change.CHILDREN
    return None if new.mzxid == old.mzxid else Change.DATA


def _ignore(_event: WatchEvent) -> None:
    """Ignore an event of a lagging server."""
