"""Compare the fence of a broker with Kafka 4.4's classes: ``python -m benchmarks.against_kafka.kraft_fence``.

Each decides the records, applies them and encodes them. kframe encodes whole record batches, with checksums; Kafka's
classes the values alone (``kraft.broker_failure`` of ``peerbench``). Both run in turn, kframe before and after. Needs
the plugin kraft, Maven and JDK 17 or newer.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

from kframe_kraft.batches import BatchPosition
from kframe_kraft.encoding.decision import encode_decision

from benchmarks.against_kafka import kafka_classes
from benchmarks.against_kafka.kraft_replay import arguments, cluster
from benchmarks.records import IncrementalRecord, command_of, table
from benchmarks.report.ratios import Ratio, to_record
from kframe.core.kraft.brokers.broker_events import fence_broker
from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.random_source import JavaRandom
from kframe.model.kraft.metadata import ClusterMetadata

FENCED: Final = 0
POSITION: Final = BatchPosition(base_offset=3_000_000, leader_epoch=5, timestamp=1)
PEER_PARTS: Final = ("kraft.broker_failure.generate_and_replay", "kraft.broker_failure.serialise")


def measure(metadata: ClusterMetadata, runs: int) -> Iterator[dict[str, Any]]:
    """Fence a broker ``runs`` times, each time in a copy of the cluster: seconds, records and bytes."""
    for _ in range(runs):
        copy = metadata.copy()
        heartbeats = Heartbeats.activated(1, copy.brokers.registrations, 0)
        context = KraftContext(copy, heartbeats, KraftSettings(), JavaRandom(0))
        gc.collect()
        begun = time.perf_counter()
        decided = fence_broker(context, copy.brokers.registrations[FENCED])
        decided_at = time.perf_counter()
        batches = list(encode_decision(decided, POSITION))
        encoded_at = time.perf_counter()
        count, offset = 0, POSITION.base_offset
        for part in decided.parts:
            count += context.apply(part, offset + count)
        applied_at = time.perf_counter()
        yield {
            "decide_seconds": decided_at - begun + applied_at - encoded_at,
            "encode_seconds": encoded_at - decided_at,
            "seconds": applied_at - begun,
            "records": count,
            "bytes": sum(map(len, batches)),
        }


def main(words: list[str] | None = None) -> int:
    """Measure, print a table, and write the record. Returns 0, or 2 if a tool is missing."""
    chosen = arguments(__doc__, brokers=100, record="kraft-fence.json").parse_args(words)
    if missing_tools := kafka_classes.missing():
        print(f"no {missing_tools} on this machine: there is nothing to compare with", file=sys.stderr)
        return 2
    result: dict[str, Any] = {}
    record = IncrementalRecord(chosen.out, command_of("benchmarks.against_kafka.kraft_fence", words), lambda: result)
    with record.part(f"fence of a broker, {chosen.partitions:,} partitions"):
        metadata = cluster(chosen.partitions, chosen.brokers)
        work = kafka_classes.Work("kraft", chosen.partitions, chosen.brokers, chosen.peer_runs, 0)
        runs = list(measure(metadata, chosen.runs))
        figures = kafka_classes.run(work, "g1", chosen.heap)
        runs += measure(metadata, chosen.runs)
        peer = [float(figures[part]["seconds_min"]) for part in PEER_PARTS]
        best = {name: min(run[name] for run in runs) for name in runs[0]}
        pairs = {
            "decided": (best["decide_seconds"], peer[0]),
            "encoded": (best["encode_seconds"], peer[1]),
            "in all": (best["seconds"], sum(peer)),
        }
        size = f"kraft fence/{chosen.partitions}/{chosen.brokers}"
        ratios = [Ratio(f"{size} {name} beside kafka", theirs / ours) for name, (ours, theirs) in pairs.items()]
        result |= {"runs": runs, "peer": {part: dict(figures[part]) for part in PEER_PARTS}, "best": best}
        result["ratios"] = to_record(ratios)
        rows = [
            (name, f"{ours * 1000:.1f} ms", f"{theirs * 1000:.1f} ms", f"{theirs / ours:.1f}")
            for name, (ours, theirs) in pairs.items()
        ]
        records = f"Best runs. {best['records']:,} records, {best['bytes']:,} bytes."
        table([("what", "kframe", "Kafka 4.4", "ratio"), *rows], records)
    return record.end()


if __name__ == "__main__":
    raise SystemExit(main())
