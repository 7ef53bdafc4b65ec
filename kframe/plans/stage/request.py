"""The limits of a plan in stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kframe.errors import ParameterError
from kframe.model.arrays import Int64
from kframe.plans.stage.windows import TimeWindow, longest_window


@dataclass(frozen=True, slots=True)
class StageRequest:
    """What each stage keeps; None is no limit.

    ``moves_per_broker`` and ``bytes_per_broker`` hold for the replicas into a broker and for those out of it, ``moves``
    and ``bytes_in_flight`` for all together. ``disk_capacity`` is in bytes by broker id; the key None is for all
    others. ``weights`` (n,) are the bytes of a replica of each row of the snapshot. ``rate`` is the bytes per second
    into a broker, and out of it. ``windows`` are times of the day in which a stage begins and ends.
    """

    moves_per_broker: int | None = None
    moves: int | None = None
    bytes_in_flight: int | None = None
    bytes_per_broker: int | None = None
    disk_capacity: Mapping[int | None, int] = field(default_factory=dict)
    weights: Int64 | None = None
    rate: int | None = None
    windows: tuple[TimeWindow, ...] = ()

    def __post_init__(self) -> None:
        """Raise InputError for a limit below 1, and for a limit of bytes without sizes."""
        for name in ("moves_per_broker", "moves", "bytes_in_flight", "bytes_per_broker", "rate"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ParameterError(name, str(value), "1 or more")
        for broker_id, capacity in self.disk_capacity.items():
            if capacity < 0:
                of_broker = "" if broker_id is None else f" of broker {broker_id}"
                raise ParameterError("disk_capacity", str(capacity), "0 or more bytes", of_broker)
        for name in ("bytes_in_flight", "bytes_per_broker", "disk_capacity", "rate"):
            if self.weights is None and getattr(self, name):
                raise ParameterError(name, "no sizes of partitions", "weights, since it is in bytes")
        if self.windows and self.rate is None:
            raise ParameterError(
                "windows", "no rate", "a rate in bytes per second, which determines the time of a stage"
            )

    @property
    def stage_bytes_per_broker(self) -> int | None:
        """The limit of bytes per broker and stage. A stage must also end within the longest window."""
        if not self.windows or self.rate is None:
            return self.bytes_per_broker
        within = self.rate * longest_window(self.windows)
        return within if self.bytes_per_broker is None else min(within, self.bytes_per_broker)
