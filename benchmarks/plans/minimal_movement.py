"""The algorithm that KAFKA-19048 (KIP-1151) proposes for Kafka, from its text, for one topic after another.

Each rack gets a replica of every partition if there are as many racks as replicas. Otherwise a rack gets at most that,
and brokers share the rest equally. A remainder goes to the brokers that are furthest above the average. A broker that
violates rack awareness, or has more than its ideal number, gives replicas away: within its rack to the broker that is
furthest below its ideal, or to a rack that the partition does not use. Then leaders go to the replica that is furthest
below its ideal number of leaders, and followers are ordered so that neighbours repeat as rarely as possible. Where the
replication factor exceeds the racks, the proposal refuses rack awareness; here racks are ignored then.

Arguments: a folder with brokers.tsv and partitions.tsv, the file for the result, and ids of brokers to leave. Prints
the processor time in seconds.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from itertools import groupby
from pathlib import Path


class TopicBalancer:
    """One topic: ``lists`` are changed in place. ``racks`` has every broker; ``targets`` may receive replicas."""

    def __init__(self, lists: list[list[int]], racks: dict[int, str], targets: list[int]) -> None:
        self.lists, self.targets = lists, targets
        self.factor = len(lists[0])
        aware = len({racks[broker] for broker in targets}) >= self.factor
        self.racks = racks if aware else {broker: str(broker) for broker in racks}
        self.members: dict[str, list[int]] = defaultdict(list)
        for broker in targets:
            self.members[self.racks[broker]].append(broker)
        self.count = Counter(broker for replicas in lists for broker in replicas)
        self.partitions: dict[int, set[int]] = defaultdict(set)
        for number, replicas in enumerate(lists):
            for broker in replicas:
                self.partitions[broker].add(number)
        self.ideal = self._ideal_counts()

    def _ideal_counts(self) -> Counter[int]:
        average: dict[int, int] = {}
        pool: dict[int, str] = {}
        remainder: dict[str, int] = {}
        remaining, brokers = len(self.lists) * self.factor, len(self.targets)
        for rack, inside in sorted(self.members.items(), key=lambda item: -len(item[1])):
            full = self.factor == len(self.members) or -(-len(inside) * remaining // brokers) >= len(self.lists)
            total, among, name = (len(self.lists), len(inside), rack) if full else (remaining, brokers, "")
            if full and self.factor != len(self.members):
                remaining, brokers = remaining - len(self.lists), brokers - len(inside)
            for broker in inside:
                average[broker], pool[broker] = total // among, name
            remainder[name] = total % among
        ideal: Counter[int] = Counter()
        for broker in sorted(self.targets, key=lambda broker: average[broker] - self.count[broker]):
            extra = remainder[pool[broker]] > 0
            ideal[broker] = average[broker] + extra
            remainder[pool[broker]] -= extra
        return ideal

    def balance(self) -> None:
        """Move replicas, then order them."""
        involved = sorted({*self.count, *self.targets}, key=lambda broker: self.ideal[broker] - self.count[broker])
        violating = {broker for broker in involved if any(map(self._violates, self._pairs(broker)))}
        for broker in sorted(involved, key=lambda broker: broker not in violating):
            for pair in sorted(self._pairs(broker)):
                if self._violates(pair):
                    self._replace(*pair, across=True)
            for pair in sorted(self._pairs(broker)):
                if self.count[broker] > self.ideal[broker]:
                    self._replace(*pair, across=False)
        if self.factor > 1:
            self._order()

    def _pairs(self, broker: int) -> list[tuple[int, int]]:
        return [(number, broker) for number in self.partitions[broker]]

    def _violates(self, pair: tuple[int, int]) -> bool:
        number, broker = pair
        rack = self.racks[broker]
        return any(other != broker and self.racks[other] == rack for other in self.lists[number])

    def _replace(self, number: int, broker: int, *, across: bool) -> None:
        replicas, rack = self.lists[number], self.racks[broker]
        used = {self.racks[other] for other in replicas if other != broker}
        inside = self.members.get(rack, [])
        load = sum(self.count[other] for other in self.count if self.racks[other] == rack)
        over = load > sum(self.ideal[other] for other in inside)
        choices = [other for other in inside if other not in replicas] if not across and not over else []
        if not choices:
            choices = [other for other in self.targets if other not in replicas and self.racks[other] not in used]
        best = min(choices, key=lambda other: self.count[other] - self.ideal[other], default=None)
        if best is None or (not across and self.count[best] >= self.ideal[best]):
            return
        replicas[replicas.index(broker)] = best
        self.count[broker] -= 1
        self.count[best] += 1
        self.partitions[broker].discard(number)
        self.partitions[best].add(number)

    def _order(self) -> None:
        share = -(-len(self.lists) // len(self.targets))
        ideal = {broker: min(count, share) for broker, count in self.count.items()}
        led: Counter[int] = Counter()
        chances = Counter(self.count)
        after: Counter[tuple[int, int]] = Counter()
        for replicas in self.lists:
            leader = max(replicas, key=lambda broker: (ideal[broker] - led[broker], -chances[broker]))
            replicas.remove(leader)
            replicas.insert(0, leader)
            led[leader] += 1
            chances.subtract(replicas)
            for position in range(1, len(replicas)):
                last = replicas[position - 1]
                following = min(replicas[position:], key=lambda broker: after[last, broker])
                replicas.remove(following)
                replicas.insert(position, following)
                after[last, following] += 1


def main() -> None:
    """Read, balance, write."""
    folder, out, *leaving = sys.argv[1:]
    lines = [line.split("\t") for line in (Path(folder) / "brokers.tsv").read_text().splitlines()]
    racks = {int(broker): rack or f"-{broker}" for broker, rack in lines}
    targets = [broker for broker in racks if str(broker) not in leaving]
    rows = [line.split("\t") for line in (Path(folder) / "partitions.tsv").read_text().splitlines()]
    topics = [
        (name, [list(map(int, row[2].split(","))) for row in partitions])
        for name, partitions in groupby(rows, lambda row: row[0])
    ]
    start = time.process_time()
    for _, lists in topics:
        TopicBalancer(lists, racks, targets).balance()
    seconds = time.process_time() - start
    with Path(out).open("w") as file:
        for name, lists in topics:
            for number, replicas in enumerate(lists):
                file.write(f"{name}\t{number}\t{','.join(map(str, replicas))}\n")
    print(seconds)


if __name__ == "__main__":
    main()
