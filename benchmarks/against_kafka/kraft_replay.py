"""Compare the replay of a KRaft snapshot with Kafka 4.4's classes: ``python -m benchmarks.against_kafka.kraft_replay``.

kframe reads a ``.checkpoint`` from disk into columns. Kafka's ``ReplicationControlManager`` and the managers beside it
replay records that are in memory already (``kraft.log_replay`` of ``peerbench``). Both run in turn, kframe before and
after. Needs the plugin kraft, Maven and JDK 17 or newer.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import numpy as np
from kframe_kraft.disk import SnapshotId
from kframe_kraft.encoding.checkpoint import write_checkpoint
from kframe_kraft.replay.image import image_of
from kframe_kraft.sources.paths import read_source

from benchmarks.against_kafka import kafka_classes
from benchmarks.records import LATEST, IncrementalRecord, command_of, table
from kframe.plugin.columns import Int32, Ragged
from kframe.plugin.kraft import ClusterMetadata, PartitionLists, records, replay

PARTITIONS_A_TOPIC: Final = 100
FACTOR: Final = 3
SNAPSHOT_ID: Final = SnapshotId(2_000_000, 5)


def cluster(partitions: int, brokers: int) -> ClusterMetadata:
    """A cluster as ``peerbench`` has it: 100 partitions a topic, three replicas, leaders spread evenly."""
    metadata = ClusterMetadata()
    replay(metadata, records.FeatureLevelRecord(name="metadata.version", feature_level=33), 0)
    for broker in range(brokers):
        replay(metadata, _registration(broker), broker)
    numbers: Int32 = np.arange(partitions, dtype=np.int32)
    for number in range(-(-partitions // PARTITIONS_A_TOPIC)):
        replay(metadata, records.TopicRecord(name=f"topic-{number:05}", topic_id=UUID(int=1 << 99 | number << 40)), 0)
    spread = numbers // brokers % max(1, (brokers - 1) // 2) + 1
    replicas = np.stack([(numbers + step * spread) % brokers for step in range(FACTOR)], axis=1).ravel()
    offsets: Int32 = np.arange(0, FACTOR * partitions + 1, FACTOR, dtype=np.int32)
    lists, none = Ragged(offsets, replicas.astype(np.int32)), Ragged.empty(partitions)
    directories: Int32 = np.array(metadata.directories.indexes_of(map(_directory, range(brokers))), np.int32)
    topic, partition = numbers // PARTITIONS_A_TOPIC, numbers % PARTITIONS_A_TOPIC
    metadata.topics.extend_rows(topic, partition, 0)
    metadata.partitions.append(
        PartitionLists(lists, lists, Ragged(offsets, directories[replicas]), none, none, none, none),
        {"topic": topic, "partition": partition, "leader": replicas[::FACTOR]},
    )
    return metadata


def measure(path: Path, runs: int) -> Iterator[dict[str, Any]]:
    """Read the snapshot ``runs`` times: seconds of reading and splitting the file, and of replay."""
    for _ in range(runs):
        gc.collect()
        begun, begun_cpu = time.perf_counter(), time.process_time()
        history = read_source(path).history
        read = time.perf_counter()
        image = image_of(history)
        end, end_cpu = time.perf_counter(), time.process_time()
        partitions = image.metadata.partitions
        yield {
            "read_seconds": read - begun,
            "replay_seconds": end - read,
            "cpu_seconds": end_cpu - begun_cpu,
            "bytes_per_partition": partitions.nbytes / len(partitions) + 4,  # with the index of rows
        }


def arguments(description: str | None, *, brokers: int, record: str) -> argparse.ArgumentParser:
    """Options of a comparison with the classes on ``cluster``. ``record`` is the default name of its record."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--brokers", type=int, default=brokers)
    parser.add_argument("--runs", type=int, default=5, help="runs of kframe before and after the classes")
    parser.add_argument("--peer-runs", type=int, default=3)
    parser.add_argument("--heap", default="6g", help="of the classes")
    parser.add_argument("--out", type=Path, default=LATEST / record)
    return parser


def main(words: list[str] | None = None) -> int:
    """Measure, print a table, and write the record. Returns 0, or 2 if a tool is missing."""
    chosen = arguments(__doc__, brokers=10, record="kraft-replay.json").parse_args(words)
    if missing_tools := kafka_classes.missing():
        print(f"no {missing_tools} on this machine: there is nothing to compare with", file=sys.stderr)
        return 2
    result: dict[str, Any] = {}
    record = IncrementalRecord(chosen.out, command_of("benchmarks.against_kafka.kraft_replay", words), lambda: result)
    with record.part(f"replay of {chosen.partitions:,} partitions"), tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / SNAPSHOT_ID.file_name
        write_checkpoint(cluster(chosen.partitions, chosen.brokers), path, SNAPSHOT_ID, timestamp=1, now=2)
        work = kafka_classes.Work("kraft", chosen.partitions, chosen.brokers, chosen.peer_runs, 0)
        runs = list(measure(path, chosen.runs))
        figures = kafka_classes.run(work, "g1", chosen.heap)
        runs += measure(path, chosen.runs)
        peer = figures["kraft.log_replay"]
        best = {name: min(run[name] for run in runs) for name in runs[0]}
        result |= {"runs": runs, "peer": dict(peer), "best": best}
        total_seconds = best["read_seconds"] + best["replay_seconds"]
        rows = [
            (
                "replay",
                f"{best['replay_seconds']:.3f} s",
                f"{peer['seconds_min']:.3f} s",
                f"{peer['seconds_min'] / best['replay_seconds']:.1f}",
            ),
            (
                "replay with reading the file",
                f"{total_seconds:.3f} s",
                f"{peer['seconds_min']:.3f} s",
                f"{peer['seconds_min'] / total_seconds:.1f}",
            ),
            (
                "memory of a partition",
                f"{best['bytes_per_partition']:.0f} B",
                f"{peer['heap_bytes_per_partition']:.0f} B",
                f"{peer['heap_bytes_per_partition'] / best['bytes_per_partition']:.1f}",
            ),
        ]
        table([("what", "kframe", "Kafka 4.4", "ratio"), *rows], "Best runs. Kafka's classes replay records in memory.")
    return record.end()


def _directory(broker: int) -> UUID:
    return UUID(int=(broker + 1) << 64 | broker)


def _registration(broker: int) -> records.RegisterBrokerRecord:
    return records.RegisterBrokerRecord(
        broker_id=broker,
        incarnation_id=UUID(int=700 + broker),
        broker_epoch=broker,
        end_points=(),
        features=(),
        rack=None,
        fenced=False,
        log_dirs=(_directory(broker),),
    )


if __name__ == "__main__":
    raise SystemExit(main())
