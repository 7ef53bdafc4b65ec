"""A cluster in memory: a store with ZooKeeper's rules, recording and counting transports, brokers that respond, and a
clock.

Nothing here uses threads, sockets or real time, and equal calls give equal results.
"""

from __future__ import annotations

from kframe.lazy import load_at_access

load_at_access(__name__)
