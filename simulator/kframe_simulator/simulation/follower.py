"""A lagging server of the ensemble: its records and the watches set there."""

from __future__ import annotations

from dataclasses import replace

from kframe.embedded.records import Change, RecordTree, WatchEvent


def fork(tree: RecordTree) -> RecordTree:
    """The records as they are now, with the same sessions; nobody watches anything there."""
    twin = RecordTree()
    twin.zxid = tree.zxid
    twin._records = {path: replace(record, children=dict(record.children)) for path, record in tree._records.items()}
    twin._listeners = dict.fromkeys(tree._listeners, _nobody)
    return twin


def armed(tree: RecordTree, session: int) -> list[tuple[bool, str]]:
    """(whether of the children, path) of all that a session watches."""
    return [where for where, sessions in tree._watches.items() if session in sessions]


def arm(tree: RecordTree, session: int, path: str, of_children: bool) -> None:
    """Watch a path, or its children, from now on."""
    tree._arm(session, path, of_children=of_children)


def changed(before: RecordTree, now: RecordTree, path: str, of_children: bool) -> Change | None:
    """What a watch that was armed in ``before`` has to say now; None if nothing has changed."""
    old, new = before._records.get(path), now._records.get(path)
    if old is None:
        return None if new is None or of_children else Change.CREATED
    if new is None or new.czxid != old.czxid:
        return Change.DELETED
    if of_children:
        same = new.children == old.children and new.children_created == old.children_created
        return None if same else Change.CHILDREN
    return None if new.mzxid == old.mzxid else Change.DATA


def _nobody(_event: WatchEvent) -> None:
    """Nobody listens on a server that is behind."""
