"""What a plan between the log directories of a broker is to reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kframe.errors import ParameterError
from kframe.ports.administration import DirectoryName


@dataclass(frozen=True, slots=True)
class DiskRequest:
    """Level the log directories of each broker, or relieve some of them.

    ``brokers``: only these are levelled. ``relieve``: only these directories are relieved, until they are at
    ``until_percent`` of their disk, or have ``until_bytes``; no directory that receives their replicas exceeds that.
    ``tolerance`` is the deviation from a directory's share that levelling allows, in percent. ``exclude``: directories
    that no replica leaves or enters. ``disk_bytes`` are sizes of disks, of a directory, of a broker (None for the
    path) or of all (None), where the source does not say them, or differently. ``rate`` is the bytes per second that a
    broker copies between its directories, for an estimate of the duration. ``exact``: solve brokers of up to 100,000
    replicas times directories to the optimum.
    """

    brokers: tuple[int, ...] | None = None
    relieve: tuple[DirectoryName, ...] = ()
    until_percent: float | None = None
    until_bytes: int | None = None
    tolerance: float = 10.0
    exclude: tuple[DirectoryName, ...] = ()
    disk_bytes: Mapping[tuple[int, str | None] | None, int] = field(default_factory=dict)
    rate: int | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        """Raise InputError for a number out of range, a repeated directory, and for contradicting goals."""
        levels = [level for level in (self.until_percent, self.until_bytes) if level is not None]
        if self.relieve and len(levels) != 1:
            raise ParameterError(
                "until", "two levels" if levels else "no level", "one level with relieve: percent, or bytes"
            )
        if levels and not self.relieve:
            raise ParameterError("until", "no directory to relieve", "relieve with it")
        if self.relieve and self.brokers is not None:
            raise ParameterError("brokers", "directories to relieve", "no brokers: a directory names its own")
        if self.until_percent is not None and not 0 <= self.until_percent <= 100:
            raise ParameterError("until", f"{self.until_percent:g} percent", "0 to 100 percent")
        if self.until_bytes is not None and self.until_bytes < 0:
            raise ParameterError("until", f"{self.until_bytes} bytes", "0 or more bytes")
        if not 0 <= self.tolerance <= 100:
            raise ParameterError("tolerance", f"{self.tolerance:g}", "0 to 100 percent")
        if self.rate is not None and self.rate < 1:
            raise ParameterError("rate", str(self.rate), "1 or more bytes per second")
        for name in ("relieve", "exclude"):
            directories = getattr(self, name)
            repeated = next((item for item in directories if directories.count(item) > 1), None)
            if repeated is not None:
                raise ParameterError(name, f"{repeated.text} twice", "each directory once")
        both = next((directory for directory in self.relieve if directory in self.exclude), None)
        if both is not None:
            raise ParameterError("exclude", f"{both.text}, which is relieved", "a directory that is not relieved")

    def disk_size(self, directory: DirectoryName) -> int | None:
        """The stated size of the disk of a directory: its own, else that of its broker, else that of all."""
        keys = ((directory.broker_id, directory.path), (directory.broker_id, None), None)
        return next((self.disk_bytes[key] for key in keys if key in self.disk_bytes), None)

    def level(self, disk: int | None) -> int | None:
        """The bytes at which a directory is relieved; None if that depends on the unknown size of its disk."""
        if self.until_percent is None:
            return self.until_bytes
        return None if disk is None else int(disk * self.until_percent / 100)
