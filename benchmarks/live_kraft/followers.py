"""The compiled brokers that only follow (``followers.c``): their requests, their process, and what they have seen."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self
from uuid import UUID

from kframe_kafka_wire.protocol.codec import encode_request

from kframe.testing.waiting import PATIENCE_S, wait_until

_FETCH, _FETCH_VERSION, _HEARTBEAT, _HEARTBEAT_VERSION = 1, 17, 63, 1
_TOPIC_ID: Final = UUID(int=1)
#: Bytes of a response to Fetch, as brokers of Kafka ask for them.
_FETCH_BYTES: Final = 8 << 20
_WAIT_MS: Final = 500
_ANY: Final = 0x1122334455667788


@dataclass(frozen=True, slots=True)
class Fetched:
    """A broker had fetched to ``offset``, and knew ``high_watermark``, at a time of the monotonic clock."""

    broker: int
    offset: int
    high_watermark: int
    at_ns: int


@dataclass(slots=True)
class Seen:
    """What the brokers have seen so far."""

    fetched: list[Fetched] = field(default_factory=list)
    beats: list[int] = field(default_factory=list)
    """When the first heartbeat of each connection was accepted."""
    took_ns: list[int] = field(default_factory=list)
    """How long each heartbeat took that was accepted."""
    last_beat_ns: dict[int, int] = field(default_factory=dict)
    """When stopped brokers sent their last heartbeat."""


class Followers:
    """The process of the brokers. It is a context manager."""

    def __init__(
        self, program: Path, folder: Path, port: int, brokers: int, observers: int, offset: int, epoch: int
    ) -> None:
        """All have the log below ``offset``, whose last record is of ``epoch``. ``observers`` only fetch."""
        self.seen = Seen()
        fetch, beat = folder / "fetch.request", folder / "heartbeat.request"
        _write_template(fetch, fetch_template())
        _write_template(beat, heartbeat_template())
        words = [program, "127.0.0.1", port, brokers, observers, offset, epoch, 500, fetch, beat]
        self._process = subprocess.Popen(
            list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._reader.join()

    def stop(self, broker: int) -> int:
        """End the heartbeats of a broker. Returns the nanoseconds of its last one."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"stop {broker}\n")
        self._process.stdin.flush()
        wait_until(lambda: broker in self.seen.last_beat_ns)
        return self.seen.last_beat_ns[broker]

    def await_quiet(self, brokers: int, quiet_s: float) -> int:
        """Return the high watermark when all brokers have fetched to it, and it has not moved for a while."""
        deadline = time.monotonic() + 10 * PATIENCE_S
        while time.monotonic() < deadline:
            last = {each.broker: each for each in tuple(self.seen.fetched)}
            newest = max((each.at_ns for each in last.values()), default=time.monotonic_ns())
            ends = {(each.offset, each.high_watermark) for each in last.values()}
            if len(last) == brokers and len(ends) == 1 and time.monotonic_ns() - newest > quiet_s * 1e9:
                ((offset, high_watermark),) = ends
                if offset == high_watermark:
                    return high_watermark
            time.sleep(0.05)
        raise RuntimeError("the brokers do not reach the end of the log")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            kind, broker, *numbers = line.split()
            values = list(map(int, numbers))
            if kind == "fetch":
                self.seen.fetched.append(Fetched(int(broker), *values))
            elif kind == "beat":
                self.seen.beats.append(values[0])
            elif kind == "took":
                self.seen.took_ns.append(values[0])
            else:
                self.seen.last_beat_ns[int(broker)] = values[0]


def compiled(folder: Path) -> Path:
    """The program, compiled into a folder."""
    program = folder / "followers"
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["cc", "-O2", "-pthread", "-o", program, source], check=True)
    return program


def fetch_template() -> tuple[bytes, Sequence[tuple[int, int]]]:
    """A Fetch, and position and size of replica id, leader epoch, offset and last epoch."""

    def encoded(replica: int = 7, epoch: int = 7, offset: int = 7, last_epoch: int = 7) -> bytes:
        partition = {
            "partition": 0,
            "current_leader_epoch": epoch,
            "fetch_offset": offset,
            "last_fetched_epoch": last_epoch,
            "log_start_offset": 0,
            "partition_max_bytes": 0,
            "replica_directory_id": bytes(16),
        }
        fields = {
            "replica_state": {"replica_id": replica, "replica_epoch": -1},
            "max_wait": _WAIT_MS,
            "min_bytes": 1,
            "max_bytes": _FETCH_BYTES,
            "session_id": 0,
            "session_epoch": -1,
            "topics": [{"topic_id": _TOPIC_ID.bytes, "partitions": [partition]}],
            "forgotten_topics_data": [],
            "rack_id": "",
        }
        request: bytes = encode_request(_FETCH, _FETCH_VERSION, 1, "follower", fields)
        return request

    return encoded(), _positions(
        encoded(),
        [
            (encoded(replica=_ANY >> 33), 4),
            (encoded(epoch=_ANY >> 33), 4),
            (encoded(offset=_ANY), 8),
            (encoded(last_epoch=_ANY >> 33), 4),
        ],
    )


def heartbeat_template() -> tuple[bytes, Sequence[tuple[int, int]]]:
    """A BrokerHeartbeat, and position and size of broker id, broker epoch and applied offset."""

    def encoded(broker: int = 7, epoch: int = 7, offset: int = 7) -> bytes:
        fields: Mapping[str, Any] = {
            "broker_id": broker,
            "broker_epoch": epoch,
            "current_metadata_offset": offset,
            "want_fence": False,
            "want_shut_down": False,
            "offline_log_dirs": [],
        }
        request: bytes = encode_request(_HEARTBEAT, _HEARTBEAT_VERSION, 1, "follower", fields)
        return request

    return encoded(), _positions(
        encoded(), [(encoded(broker=_ANY >> 33), 4), (encoded(epoch=_ANY), 8), (encoded(offset=_ANY), 8)]
    )


def _positions(plain: bytes, changed: Sequence[tuple[bytes, int]]) -> list[tuple[int, int]]:
    """Where each of the changed requests differs from the plain one, and how many bytes the field has."""
    positions = []
    for other, size in changed:
        assert len(other) == len(plain)
        last = max(index for index in range(len(plain)) if plain[index] != other[index])
        positions.append((last + 1 - size, size))
    return positions


def _write_template(path: Path, template: tuple[bytes, Sequence[tuple[int, int]]]) -> None:
    request, fields = template
    path.write_bytes(" ".join(str(position) for position, _ in fields).encode() + b"\n" + request)
