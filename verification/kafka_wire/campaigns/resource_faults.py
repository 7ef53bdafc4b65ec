"""Faults of resources of a controller: its disk is full, or it has no file descriptor left."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from kframe.testing.waiting import until
from verification.kafka_wire.campaigns.fault_cluster import CLIENT, FAULT_S, Fault, FaultRun
from verification.kafka_wire.instances import InstanceProcess
from verification.support.descriptors import exhausted_descriptors

TEXT: Final = """\
kframe writes two files, `controller.log` and `state-change.log`; its other state is in ZooKeeper.

Disk: both instances log to a file system of 1 MiB (tmpfs), which another file fills. Then the leader of partition 0 is
killed and restarted, the active instance is killed and started again, and the disk is freed.

Descriptors: the instance can open no file or socket (RLIMIT_NOFILE). Meanwhile clients open 50 connections to it, and
the leader of partition 0 is killed and restarted. `CPU` is the share of a core that the instance uses meanwhile."""
_DISK_BYTES: Final = 1 << 20
_CONNECTIONS: Final = 50
#: Python's logging reports a line that it cannot write to stderr, with this error.
_NO_SPACE: Final = "OSError: [Errno 28]"


@contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    """A small file system at ``folder/disk``. Raises CalledProcessError where mounts are not permitted."""
    disk = folder / "disk"
    disk.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs", disk], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


@contextmanager
def _disk_full(run: FaultRun) -> Iterator[None]:
    disk, filler = run.folder / "disk", run.folder / "disk" / "filler"
    with filler.open("wb", buffering=0) as file:
        while _room(disk):
            file.write(bytes(_room(disk)))
    run.bounce_leader()
    run.active.kill()
    assert until(lambda: run.cluster.fixture.controller()[0] == run.standby.number), run.standby.log
    run.active.start()
    until(lambda: False, FAULT_S)
    full, lost = _logged(disk), sum(instance.log.count(_NO_SPACE) for instance in run.instances)
    filler.unlink()
    run.bounce_leader()
    if not until(lambda: _logged(disk) > full):
        run.violations.append("nothing is logged after the disk was freed")
    run.effect = f"{lost} log lines refused; more logged when the disk was freed"
    yield


def _room(disk: Path) -> int:
    status = os.statvfs(disk)
    return status.f_bavail * status.f_bsize


def _logged(disk: Path) -> int:
    return sum(path.stat().st_size for path in disk.rglob("*.log"))


def _no_descriptors(name: str, *, active: bool) -> Fault:
    @contextmanager
    def inject(run: FaultRun) -> Iterator[None]:
        instance = run.active if active else run.standby
        pid = instance.pid
        assert pid is not None
        start_s, cpu_s, lines = time.monotonic(), _cpu_s(pid), instance.log.count("\n")
        with exhausted_descriptors(pid) as limit, ExitStack() as connections:
            with run.cluster.machines[CLIENT].entered():
                for _ in range(_CONNECTIONS):
                    connections.enter_context(_connection(instance))
            run.bounce_leader()
            until(lambda: False, FAULT_S)
            share = (_cpu_s(pid) - cpu_s) / (time.monotonic() - start_s)
            lines = instance.log.count("\n") - lines
            run.effect = f"limit of {limit} descriptors, CPU {share:.0%}, {lines} log lines"
            yield

    return Fault(name, inject)


def _connection(instance: InstanceProcess) -> socket.socket:
    """A connection that the kernel accepts, and the instance when it can."""
    host, _, port = instance.address.rpartition(":")
    return socket.create_connection((host, int(port)), FAULT_S)


def _cpu_s(pid: int) -> float:
    """CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


FAULTS: Final = [
    Fault("disk full", _disk_full, ("--log-dir", "{folder}/disk/{number}"), _small_disk),
    _no_descriptors("no descriptors, active instance", active=True),
    _no_descriptors("no descriptors, standby", active=False),
]
