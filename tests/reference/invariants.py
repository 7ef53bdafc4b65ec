"""Laws that hold after every step (``reliability.md`` section 2), checked on what kframe stored and sent.

What Kafka's rules themselves break is left out: an ISR keeps its last member even where that has left the assignment,
and a partition is free of the laws on leader and ISR (``odd``) after a proposal that Kafka takes without a look, or
once it was to be reassigned before it had any leader: Kafka forgets to stop the replicas that such a move has added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.reference.context import unclean
from tests.reference.facts import DELETING, NONE, Assignment, Entry, Storage, key_of

_BY_LEADERS = {"alter_partition", "isr_znode"}
_BY_OPERATORS = {"reassign", "reassign_znode", "elect"}


class Laws:
    """Knows what was stored after the last step."""

    def __init__(self, stored: Mapping[str, Entry], config: Mapping[str, Any]) -> None:
        self._stored = dict(stored)
        self._unclean = str(config.get("unclean.leader.election.enable", False)).lower() == "true"
        self._odd: set[str] = set()

    def broken(self, step: Entry, storage: Storage) -> Iterator[str]:
        """Every law that this step breaks; ``storage`` is the model's, for settings only."""
        ((kind, argument),) = step["step"].items()
        deleted = set(step["topics_deleted"])
        if deleted:
            self._stored = {name: entry for name, entry in self._stored.items() if key_of(name)[0] not in deleted}
            self._odd = {name for name in self._odd if name in self._stored}
        if kind in _BY_LEADERS:
            self._odd |= {name for name, one in argument.items() if self._is_odd(name, one)}
        if kind in _BY_OPERATORS:
            self._odd |= {name for name in argument or self._stored if self._stored.get(name, {}).get("leader") is None}
        for name, entry in step["partitions"].items():
            before = self._stored.get(name)
            for text in (*self._isr(name, entry), *self._change(kind, argument, name, before, entry, storage)):
                yield f"{name}: {text}"
        self._stored |= step["partitions"]
        yield from self._deletions(step)
        yield from self._numbers(deleted)

    def _is_odd(self, name: str, proposal: Mapping[str, Any]) -> bool:
        has = self._stored.get(name)
        if has is None or has["leader"] is None:
            return False
        sender, isr = proposal.get("sender", has["leader"]), proposal["isr"]
        sound = sender == has["leader"] and sender in isr and set(isr) <= set(has["replicas"])
        return not sound or "leader_recovery_state" in proposal

    def _isr(self, name: str, entry: Entry) -> Iterator[str]:
        """I4 and I5."""
        leader, isr = entry["leader"], entry["isr"]
        if leader is None or name in self._odd:
            return
        if not isr or len(set(isr)) != len(isr):
            yield f"I5: ISR {isr}"
        if leader != NONE and leader not in set(isr) & set(entry["replicas"]):
            yield f"I4: leader {leader} of ISR {isr}, replicas {entry['replicas']}"
        if not set(isr) <= set(entry["replicas"]) and not (leader == NONE and len(isr) == 1):
            yield f"I5: ISR {isr} of replicas {entry['replicas']}"

    def _change(
        self, kind: str, argument: Any, name: str, before: Entry | None, after: Entry, storage: Storage
    ) -> Iterator[str]:
        """I6 to I8 and I21."""
        if before is None:
            return
        yield from self._assignment(kind, argument, name, before, after)
        if before["leader"] is None or after["leader"] is None:
            return
        raised = after["leader_epoch"] - before["leader_epoch"]
        if raised < 0 or after["partition_epoch"] < before["partition_epoch"]:
            yield f"I8: epochs fall from {before} to {after}"
        moved = (before["leader"], before["isr"]) != (after["leader"], after["isr"])
        if moved and raised == 0 and kind not in _BY_LEADERS:
            yield f"I8: {before} becomes {after} in one leader epoch"
        leader = after["leader"]
        if leader in (NONE, before["leader"]) or leader in before["isr"] or kind in _BY_LEADERS or name in self._odd:
            return
        asked = kind == "elect_leaders" and argument["type"] == "unclean"
        if not asked and not unclean(storage, key_of(name)[0], self._unclean):
            yield f"I6: {leader} leads, ISR was {before['isr']}"
        if after["isr"] != [leader] or after["leader_recovery_state"] != 1:
            yield f"I7: after an unclean election ISR {after['isr']}, recovery {after['leader_recovery_state']}"

    def _assignment(self, kind: str, argument: Any, name: str, before: Entry, after: Entry) -> Iterator[str]:
        has, now = _assignment(before), _assignment(after)
        asked = kind in _BY_OPERATORS and (kind == "elect" or name in argument)
        if has == now or asked:
            return
        if not has.moving or now != Assignment(has.target):
            yield f"I21: assignment {has} becomes {now}"

    def _deletions(self, step: Entry) -> Iterator[str]:
        """I18."""
        for request in step["requests"]:
            for name, entry in request["partitions"].items():
                if not entry.get("delete_partition") or entry["leader_epoch"] == DELETING or name not in self._stored:
                    continue
                has = _assignment(self._stored[name])
                if request["broker"] in has.target:
                    yield f"I18: broker {request['broker']} deletes {name}, assigned to {has.target}"

    def _numbers(self, deleted: set[str]) -> Iterator[str]:
        """I23."""
        topics: dict[str, set[int]] = {}
        for name in self._stored:
            topic, number = key_of(name)
            topics.setdefault(topic, set()).add(number)
        for topic, numbers in topics.items():
            if numbers != set(range(len(numbers))):
                yield f"I23: partitions {sorted(numbers)} of {topic}"


def _assignment(entry: Entry) -> Assignment:
    return Assignment(*(tuple(entry[name]) for name in ("replicas", "adding_replicas", "removing_replicas")))
