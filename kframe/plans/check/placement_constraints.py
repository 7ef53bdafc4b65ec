"""Confluent's placement constraints of topics, which kframe does not evaluate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kframe.model.texts import counted

if TYPE_CHECKING:
    from kframe.snapshot import Snapshot

#: A new topic may have it from ``confluent.log.placement.constraints`` of brokers; it is then its own.
_CONSTRAINTS: Final = "confluent.placement.constraints"
#: Topics that a note names.
_NAMED: Final = 3


def constraints_note(snapshot: Snapshot, topics: Iterable[int]) -> str | None:
    """The topics of these indexes that have placement constraints, which a plan does not check. None if none has."""
    configs = snapshot.topics.configs or {}
    names = [
        snapshot.topics.names[topic]
        for topic in sorted(set(topics))
        if configs.get(topic, {}).get(_CONSTRAINTS, "").strip() not in ("", "{}")
    ]
    if not names:
        return None
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    listed = f"{counted(len(names), 'topic')} ({', '.join(names[:_NAMED])}{more})"
    return f"placement constraints not checked: {_CONSTRAINTS} of {listed}"
