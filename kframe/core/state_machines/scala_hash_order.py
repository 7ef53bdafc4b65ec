"""The order in which Kafka takes several brokers whose replicas go offline together.

Kafka 3.9 groups replicas by broker id in a Scala 2.13 ``immutable.HashMap`` and takes the groups in that map's
iteration order. It decides which member an ISR keeps when all its members leave at once, so kframe follows it.
"""

from __future__ import annotations

from collections.abc import Iterable

_WORD = 0xFFFFFFFF
_BRANCH_BITS = 5


def _improved(broker_id: int) -> int:
    """Scala 2.13's spreading of an Int's hash code before it becomes a path in the trie."""
    spread = broker_id & _WORD
    spread = (spread + ~(spread << 9)) & _WORD
    spread ^= spread >> 14
    spread = (spread + (spread << 4)) & _WORD
    return spread ^ (spread >> 10)


def _walk(entries: list[tuple[int, int]], shift: int) -> list[int]:
    """A trie node yields its single entries first, then its sub-nodes, both by branch number."""
    branches: dict[int, list[tuple[int, int]]] = {}
    for path, broker_id in entries:
        branches.setdefault((path >> shift) & ((1 << _BRANCH_BITS) - 1), []).append((path, broker_id))
    ordered = [branches[branch] for branch in sorted(branches)]
    singles = [branch[0][1] for branch in ordered if len(branch) == 1]
    deeper = [broker_id for branch in ordered if len(branch) > 1 for broker_id in _walk(branch, shift + _BRANCH_BITS)]
    return singles + deeper


def scala_hash_order(broker_ids: Iterable[int]) -> list[int]:
    """Distinct broker ids in the iteration order of a Scala 2.13 ``immutable.HashMap`` keyed by them."""
    return _walk([(_improved(broker_id), broker_id) for broker_id in sorted(set(broker_ids))], 0)
