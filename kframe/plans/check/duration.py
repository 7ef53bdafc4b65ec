"""The expected duration of copies at a rate."""

from __future__ import annotations

import numpy as np

from kframe.model.arrays import Int32, Int64, Ragged


def copy_seconds(receivers: Ragged, leader: Int32 | None, size: Int64, rate: int) -> float:
    """Seconds that copies take, all at once: those of the broker that receives most, or that sends most as leader.

    ``receivers`` has the brokers that each of k partitions is copied to. ``leader`` (k,) sends them, negative for none;
    None: leaders are unknown. ``size`` (k,) is the bytes of a replica. ``rate`` is bytes per second into a broker, and
    out of it.
    """
    busiest = _most(receivers.values, size[receivers.owners])
    if leader is not None:
        led = np.flatnonzero(leader >= 0)
        busiest = max(busiest, _most(leader[led], (size * receivers.counts)[led]))
    return busiest / rate


def _most(brokers: Int32, size: Int64) -> float:
    """The most bytes of a broker. Exact up to 2^53."""
    return float(np.bincount(np.unique(brokers, return_inverse=True)[1], size).max(initial=0))
