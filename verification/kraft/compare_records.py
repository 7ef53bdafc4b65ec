"""Compare random records with Kafka's classes, both ways: ``python -m verification.kraft.compare_records``.

Consecutive records go through all types and versions. It prints the number of records without a difference, and ends
with the first difference.
"""

from __future__ import annotations

import argparse
import time
from random import Random

from kframe_kraft.records import decode_record, encode_record

from kframe.plugin.kraft import from_json, to_json
from verification.kraft.kafka_records import KafkaRecords
from verification.kraft.random_records import random_record


def compare_record(kafka: KafkaRecords, number: int, random: Random) -> None:
    """Compare the bytes and JSON of a record. Raises AssertionError with its number and content."""
    versioned = random_record(number, random)
    encoded = encode_record(*versioned)
    raw, document = kafka.convert(versioned, encoded)
    assert raw == encoded, (number, versioned)
    assert document == to_json(*versioned), (number, versioned)
    assert decode_record(raw) == from_json(document) == versioned, (number, versioned)


def main() -> None:
    """Compare the number of records on the command line."""
    parser = argparse.ArgumentParser(prog="python -m verification.kraft.compare_records", description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=4)
    chosen = parser.parse_args()
    random, begun = Random(chosen.seed), time.monotonic()
    with KafkaRecords() as kafka:
        for number in range(chosen.cases):
            compare_record(kafka, number, random)
    print(f"seed {chosen.seed}: {chosen.cases:,} records equal, {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
