"""A network of machines for tests, with lost, delayed and blocked packets.

Each machine is a network namespace with a TUN device. One thread forwards IP packets between the devices, by the
impairment of each ordered pair. Namespaces and devices end with their last process and descriptor, so nothing is left.
"""

from __future__ import annotations

import fcntl
import heapq
import itertools
import os
import random
import selectors
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from verification.zookeeper.machine import Machine, new_namespace

# Requests of <linux/if_tun.h> and <linux/sockios.h>, and flags of <linux/if.h>.
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK = 0x8914, 0x8916, 0x891C
_IFF_UP, _IFF_RUNNING = 0x1, 0x40
_DEVICE: Final = b"test0"
_MASK: Final = "255.255.255.0"
_PACKET_MAX: Final = 65_536
#: Offsets of source and destination in an IPv4 header, and its version.
_SOURCE, _TARGET, _IPV4 = slice(12, 16), slice(16, 20), 4
_NEVER: Final = None


@dataclass(frozen=True, slots=True)
class Impairment:
    """What happens to packets of an ordered pair of machines."""

    loss: float = 0.0
    """The probability that a packet is dropped."""
    delay_s: float = 0.0
    flap_s: float = 0.0
    """The link is down and up in turn for so many seconds each. 0: it is up."""


HEALTHY: Final = Impairment()
BLOCKED: Final = Impairment(loss=1.0)


class Links:
    """Impairments by source and target, and the decision on each packet. Losses depend only on ``seed``."""

    def __init__(self, seed: int = 0) -> None:
        self.forwarded: Counter[tuple[bytes, bytes]] = Counter()
        self.dropped: Counter[tuple[bytes, bytes]] = Counter()
        self._impaired: dict[tuple[bytes, bytes], tuple[Impairment, float]] = {}
        self._random = random.Random(seed)

    def impair(self, pairs: Iterable[tuple[bytes, bytes]], impairment: Impairment, now_s: float) -> None:
        """Impair the packets of ordered pairs from now on. A link that flaps is down first."""
        self._impaired = {**self._impaired, **dict.fromkeys(pairs, (impairment, now_s))}

    def heal(self) -> None:
        """End all impairments. Delayed packets are still forwarded."""
        self._impaired = {}

    def due(self, source: bytes, target: bytes, now_s: float) -> float | None:
        """When a packet that arrives now is forwarded. None: it is dropped."""
        impairment, since_s = self._impaired.get((source, target), (HEALTHY, now_s))
        down = impairment.flap_s > 0 and int((now_s - since_s) / impairment.flap_s) % 2 == 0
        if down or (impairment.loss > 0 and self._random.random() < impairment.loss):
            self.dropped[source, target] += 1
            return _NEVER
        self.forwarded[source, target] += 1
        return now_s + impairment.delay_s


class VirtualNetwork:
    """Machines that reach each other through a thread of the test. ``close`` ends it."""

    def __init__(self, names: Sequence[str], seed: int = 0) -> None:
        """Make a machine of each name. Raises OSError where namespaces or TUN devices are not permitted."""
        self.machines: dict[str, Machine] = {}
        self._links = Links(seed)
        self._devices: dict[bytes, int] = {}
        self._wake = os.eventfd(0, os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._forward, name="test-network", daemon=True)
        try:
            for number, name in enumerate(names, 1):
                machine = Machine(f"10.77.0.{number}", new_namespace())
                self.machines[name] = machine
                with machine.entered():
                    self._devices[socket.inet_aton(machine.address)] = _open_device(machine.address)
        except OSError:
            self._close_descriptors()
            raise
        self._thread.start()

    def impair(self, sources: Iterable[str], targets: Iterable[str], impairment: Impairment) -> None:
        """Impair packets from each source to each target, and not their responses."""
        self._links.impair(self._pairs(sources, targets), impairment, time.monotonic())

    def heal(self) -> None:
        """End all impairments."""
        self._links.heal()

    def dropped(self, sources: Iterable[str], targets: Iterable[str]) -> int:
        """The number of packets that were dropped from any source to any target."""
        return sum(self._links.dropped[pair] for pair in self._pairs(sources, targets))

    def forwarded(self, sources: Iterable[str], targets: Iterable[str]) -> int:
        """The number of packets that were forwarded from any source to any target."""
        return sum(self._links.forwarded[pair] for pair in self._pairs(sources, targets))

    def close(self) -> None:
        """End the network. Processes in it keep their namespace, without a connection."""
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        self._close_descriptors()

    def _pairs(self, sources: Iterable[str], targets: Iterable[str]) -> list[tuple[bytes, bytes]]:
        ends = ([socket.inet_aton(self.machines[name].address) for name in names] for names in (sources, targets))
        return [(source, target) for source, target in itertools.product(*ends) if source != target]

    def _forward(self) -> None:
        delayed: list[tuple[float, int, bytes]] = []
        numbers = itertools.count()
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake, selectors.EVENT_READ)
            for device in self._devices.values():
                selector.register(device, selectors.EVENT_READ)
            while True:
                timeout_s = max(0.0, delayed[0][0] - time.monotonic()) if delayed else None
                for key, _ in selector.select(timeout_s):
                    if key.fd == self._wake:
                        return
                    with suppress(BlockingIOError):
                        while True:
                            packet, now_s = os.read(key.fd, _PACKET_MAX), time.monotonic()
                            due_s = self._due(packet, now_s)
                            if due_s is not _NEVER and due_s > now_s:
                                heapq.heappush(delayed, (due_s, next(numbers), packet))
                            elif due_s is not _NEVER:
                                self._deliver(packet)
                while delayed and delayed[0][0] <= time.monotonic():
                    self._deliver(heapq.heappop(delayed)[2])

    def _due(self, packet: bytes, now_s: float) -> float | None:
        """When to forward a packet; None for other packets than IPv4 between two machines."""
        if packet[0] >> 4 != _IPV4 or packet[_TARGET] not in self._devices:
            return _NEVER
        return self._links.due(packet[_SOURCE], packet[_TARGET], now_s)

    def _deliver(self, packet: bytes) -> None:
        with suppress(OSError):  # The kernel has no room: the packet is lost, as on a full link.
            os.write(self._devices[packet[_TARGET]], packet)

    def _close_descriptors(self) -> None:
        namespaces = [machine.namespace for machine in self.machines.values() if machine.namespace is not None]
        for descriptor in (*self._devices.values(), *namespaces, self._wake):
            os.close(descriptor)


def missing() -> str | None:
    """Why this machine cannot make a network, or None."""
    try:
        VirtualNetwork(["only"]).close()
    except OSError as problem:
        return f"network namespaces or TUN devices are not permitted: {problem}"
    return None


def _open_device(address: str) -> int:
    """The descriptor of a TUN device with this address in the namespace of this thread. Loopback is up, too."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", _DEVICE, _IFF_TUN | _IFF_NO_PI))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            for request, value in ((_SIOCSIFADDR, address), (_SIOCSIFNETMASK, _MASK)):
                packed = struct.pack("16sHH4s16x", _DEVICE, socket.AF_INET, 0, socket.inet_aton(value))
                fcntl.ioctl(control, request, packed)
            for name in (_DEVICE, b"lo"):
                fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH22x", name, _IFF_UP | _IFF_RUNNING))
    except OSError:
        os.close(device)
        raise
    return device
