"""Directories for files that are not whole yet, of several writers at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kframe.spark.fleet import staging

WRITERS, ROUNDS = 8, 300


def write(root: Path) -> None:
    for number in range(ROUNDS):
        with staging(root) as directory:
            (directory / str(number)).touch()


def test_concurrent_writers_have_separate_directories(tmp_path: Path) -> None:
    with ThreadPoolExecutor(WRITERS) as pool:
        for writer in [pool.submit(write, tmp_path) for _ in range(WRITERS)]:
            writer.result()
    assert list(tmp_path.iterdir()) == []
