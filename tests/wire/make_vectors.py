"""Make ``vectors/`` with Kafka's own classes: ``python -m tests.wire.make_vectors`` (needs a JDK 17 and Maven).

A file in ``vectors/bodies`` has a case (see ``cases.py``). For each request and version it has the bodies of the
requests in hex, in send order. Cases are drawn from fixed seeds; tests read them from the files.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

from tests.wire.cases import Case, broker, build, case_of, partition, random_case, topic
from tests.wire.content import EVERY_VERSION, contents

HERE = Path(__file__).parent
VECTORS = HERE / "vectors"
#: For each request, the last version with fixed lengths and the first with compact lengths. Also the first StopReplica
#: version with structs as entries.
AROUND_COMPACT = [
    (api, version)
    for api, versions in (("LeaderAndIsr", (3, 4)), ("UpdateMetadata", (5, 6)), ("StopReplica", (1, 2, 3)))
    for version in versions
]
MADE_BY = "org.apache.kafka:kafka-clients:3.9.1"


def cases() -> dict[str, Case]:
    """Return random cases, and one topic with so many partitions that their count needs two varint bytes."""
    random_cases = {f"random-{seed}": random_case(Random(seed)) for seed in (76, 307, 357)}
    return random_cases | {
        "wide-topic": wide_case(),
        "no-topics": case_of([broker(1), broker(0)], [], updateMetadata=[[0, 1], []]),
    }


def wide_case() -> Case:
    """Return a topic of 130 partitions, all in one broker's requests."""
    keys = [[0, number] for number in range(130)]
    partitions = [partition([2], isr=[], leader=-1, leaderEpoch=number, recovery=number % 2) for _, number in keys]
    return case_of(
        [broker(2), broker(1)],
        [topic("wide", *partitions, id="00112233445566778899aabbccddeeff")],
        leaderAndIsr={"1": [[*key, 0] for key in keys]},
        updateMetadata=[[1], keys],
        stopReplica={"1": [[*key, 5, 1] for key in keys]},
    )


def kafka_encode(messages: list[dict[str, Any]]) -> list[str]:
    """Return the encoding of ``messages`` by Kafka's classes, in hex."""
    command = ["mvn", "-q", "-B", "-f", str(HERE / "java" / "pom.xml"), "compile", "exec:java"]
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    run = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    encoded = re.findall(r"body (\w+)", run.stdout)
    if run.returncode or len(encoded) != len(messages):
        sys.exit(f"{' '.join(command)}: {len(encoded)} of {len(messages)} bodies\n{run.stdout[-2000:]}{run.stderr}")
    return encoded


def make_bodies() -> None:
    """Write the vector file of each case."""
    names: list[tuple[str, str, str]] = []
    messages: list[dict[str, Any]] = []
    for name, case in cases().items():
        for api, version in EVERY_VERSION if name != "wide-topic" else AROUND_COMPACT:
            for _, content in contents(*build(case), api, version):
                names.append((name, api, str(version)))
                messages.append({"message": f"{api}Request", "version": version, "content": content})
    bodies: dict[str, dict[str, dict[str, list[str]]]] = {}
    for (name, api, api_version), body in zip(names, kafka_encode(messages), strict=True):
        bodies.setdefault(name, {}).setdefault(api, {}).setdefault(api_version, []).append(body)
    for name, case in cases().items():
        write(VECTORS / "bodies" / f"{name}.json", {"case": case, "bodies": bodies[name]})


def make_headers() -> None:
    """Write the vectors of request headers."""
    fields = [
        {"requestApiKey": api_key, "requestApiVersion": 3, "correlationId": correlation_id, "clientId": client_id}
        for api_key, correlation_id, client_id in ((4, 0, "1"), (7, 2**31 - 1, ""), (6, -1, None), (5, 77, "c" * 200))
    ]
    messages = [
        {"message": "RequestHeader", "version": version, "content": header} for version in range(3) for header in fields
    ]
    headers = zip(messages, kafka_encode(messages), strict=True)
    write(VECTORS / "headers.json", {"headers": [message | {"bytes": encoded} for message, encoded in headers]})


def write(path: Path, vectors: dict[str, Any]) -> None:
    """Write a vector file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"made_by": MADE_BY} | vectors, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    make_bodies()
    make_headers()
