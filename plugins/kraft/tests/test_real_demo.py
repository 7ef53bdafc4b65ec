"""``make demo-kraft``, and what its page takes from the records of the metadata log."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kframe.pages.parts import FactsPart, Heading, PageContent
from kframe.pages.render import document
from verification.kraft.demo.__main__ import PAGE, main
from verification.kraft.demo.timeline import Span, leaders_at, spans, timeline_part, took_over

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def record(seconds: int, kind: str, **fields: object) -> dict[str, object]:
    return {"time": at(seconds).isoformat(), "type": kind, "key": "t-0", "fields": fields}


RECORDS = [
    record(0, "Topic"),
    record(0, "Partition", leader=1, isr=[1, 2]),
    record(5, "PartitionChange", leader=2, isr=[2]),
    record(8, "PartitionChange", isr=[2, 1]),
]


def test_spans_follow_the_records() -> None:
    partitions = spans(RECORDS, at(9))
    assert partitions == {
        "t-0": [
            Span(at(0), at(5), 1, (1, 2), 0),
            Span(at(5), at(8), 2, (2,), 1),
            Span(at(8), at(9), 2, (2, 1), 1),
        ]
    }
    assert leaders_at(partitions, at(6)) == [{"partition": "t-0", "leader": 2, "isr": [2], "leader epoch": 1}]
    assert (took_over(partitions, 1, at(3)), took_over(partitions, 3, at(3))) == (at(5), None)


def test_picture_has_a_bar_for_each_span() -> None:
    part = timeline_part(spans(RECORDS, at(9)), [(at(4), "killed")])
    assert (part.begin, part.seconds) == (START.timestamp(), 9)
    page = document(PageContent(Heading("demo", FactsPart(())), [part]))
    bars = re.findall(r'class="value-(\d)" x="([\d.]+)" y="4" width="([\d.]+)"', page)
    assert bars == [("0", "120.0", "400.0"), ("1", "520.0", "240.0"), ("1", "760.0", "80.0")]
    assert "<title>leader 2, ISR [2, 1], leader epoch 1</title>" in page
    assert "broker 1 leads" in page
    assert "killed</text>" in page


@pytest.mark.real
@pytest.mark.extended
def test_demo_writes_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main()
    steps = re.findall(r"^ +([0-9.]+) s  (.+)$", capsys.readouterr().out, re.MULTILINE)
    assert [what for _, what in steps] == [
        "kframe starts",
        "three brokers serve",
        "topic orders has 6 partitions of 3 replicas",
        "broker 2 is killed",
        "kframe ends the session of broker 2, and elects leaders",
        "broker 1 knows the new leaders",
        "broker 2 serves again",
        "all replicas are in sync",
    ]
    page = PAGE.read_text()
    assert "broker fenced: broker 2" in page
    assert page.count("<title>leader 2,") >= 2
