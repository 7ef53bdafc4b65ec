"""The calculations of ``python -m benchmarks.live_kraft``, and the requests of its compiled brokers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from kframe_kafka_wire.protocol.codec import Fields, decode_header, decode_request

from benchmarks.live_kraft import __main__ as live
from benchmarks.live_kraft import floor, followers
from benchmarks.live_kraft.controllers import KAFKA, KFRAME


def measured(kind: str, run: int, seconds: float) -> live.Row:
    return {"controller": kind, "partitions": 10_000, "run": run, "what": "restart", "seconds": seconds}


def test_medians_are_compared() -> None:
    rows = live.rows(
        [measured(KFRAME, run, seconds) for run, seconds in enumerate((1.0, 9.0, 2.0))]
        + [measured(KAFKA, run, seconds) for run, seconds in enumerate((10.0, 8.0, 90.0))]
    )
    assert rows == [
        {"partitions": 10_000, "what": "restart", "figure": "seconds", "ratio": 5.0, KFRAME: 2.0, KAFKA: 10.0}
    ]
    assert live.line(rows[0]) == ("10,000", "restart: seconds", "2", "10", "5.0")


def test_figures_of_one_controller_have_no_ratio() -> None:
    (row,) = live.rows([measured(KFRAME, 0, 1.0)])
    assert live.line(row) == ("10,000", "restart: seconds", "1", "-", "-")


def fetch_fields(body: Fields) -> tuple[int, ...]:
    partition = body["topics"][0]["partitions"][0]
    names = ("current_leader_epoch", "fetch_offset", "last_fetched_epoch")
    return (body["replica_state"]["replica_id"], *(partition[name] for name in names))


def heartbeat_fields(body: Fields) -> tuple[int, ...]:
    return tuple(body[name] for name in ("broker_id", "broker_epoch", "current_metadata_offset"))


@pytest.mark.parametrize(
    ("template", "values", "fields_of"),
    [
        (followers.fetch_template, (7001, 8002, 9003, 1004), fetch_fields),
        (followers.heartbeat_template, (7001, 8002, 9003), heartbeat_fields),
    ],
)
def test_brokers_set_the_fields_of_their_requests(
    template: Callable[[], tuple[bytes, Sequence[tuple[int, int]]]],
    values: tuple[int, ...],
    fields_of: Callable[[Fields], tuple[int, ...]],
) -> None:
    """As ``followers.c`` does."""
    request, fields = template()
    content = bytearray(request)
    for (position, size), value in zip(fields, values, strict=True):
        content[position : position + size] = value.to_bytes(size, "big")
    frame = bytes(content[4:])
    assert fields_of(decode_request(decode_header(frame), frame)) == values


def test_floor_writes_and_sends_all_bytes(tmp_path: Path) -> None:
    least = floor.measure(tmp_path, 3_000_000, 3)
    assert (tmp_path / "floor").stat().st_size == 3_000_000
    assert least.durable > 0
    assert least.last_received > 0
