"""What happened in a what-if, in order: elections held, states stored, requests sent. No clock: steps have names."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeAlias

from kframe.embedded import Api
from kframe.model.ids import ElectionKind


@dataclass(frozen=True, slots=True)
class ElectionHeld:
    """Leaders were looked for in ``partitions``; of the ``elected`` ones, ``unclean`` were not in the ISR."""

    what: ClassVar[str] = "election"

    kind: ElectionKind
    partitions: int
    elected: int
    unclean: int

    def text(self) -> str:
        """The event as a line for people."""
        unclean = f", {self.unclean:,} of them unclean" if self.unclean else ""
        nobody = self.partitions - self.elected
        failed = f", {nobody:,} found nobody" if nobody else ""
        return f"{kind_name(self.kind)} election: {self.elected:,} elected{unclean}{failed}"

    def record(self) -> dict[str, Any]:
        """The event as data."""
        return {"what": self.what, **asdict(self), "kind": kind_name(self.kind)}


@dataclass(frozen=True, slots=True)
class StatesStored:
    """One bulk write. Of the ``partitions`` stored, ``created`` had no state before, ``elected`` got another leader,
    ``shrunk`` a smaller ISR, and ``leaderless`` lost their leader; ``refused`` were not stored."""

    what: ClassVar[str] = "states stored"

    partitions: int
    created: int
    elected: int
    shrunk: int
    leaderless: int
    refused: int

    def text(self) -> str:
        """The event as a line for people."""
        parts = {
            "created": self.created,
            "with another leader": self.elected,
            "with a smaller ISR": self.shrunk,
            "without leader now": self.leaderless,
            "refused": self.refused,
        }
        told = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
        return f"{self.partitions:,} states stored" + (f": {told}" if told else "")

    def record(self) -> dict[str, Any]:
        """The event as data."""
        return {"what": self.what, **asdict(self)}


@dataclass(frozen=True, slots=True)
class RequestsSent:
    """Requests of one kind: ``requests`` to ``brokers``, with ``entries`` in all for ``partitions`` different ones.

    ``nbytes`` counts sizes, headers and bodies; None where the snapshot lacks what is in them.
    """

    what: ClassVar[str] = "requests"

    api: Api
    brokers: int
    requests: int
    partitions: int
    entries: int
    nbytes: int | None

    def text(self) -> str:
        """The event as a line for people."""
        size = "" if self.nbytes is None else f", {size_text(self.nbytes)}"
        return f"{self.api.value}: {self.requests:,} to {self.brokers:,} brokers, {self.partitions:,} partitions{size}"

    def record(self) -> dict[str, Any]:
        """The event as data."""
        record = {"what": self.what, **asdict(self), "api": self.api.value}
        record["bytes"] = record.pop("nbytes")
        return record


Happening: TypeAlias = ElectionHeld | StatesStored | RequestsSent


def kind_name(kind: ElectionKind) -> str:
    """``controlled shutdown`` and the like."""
    return kind.name.lower().replace("_", " ")


def size_text(nbytes: int) -> str:
    """``312 B``, ``4.5 KB``, ``263.1 MB``: decimal units."""
    size, unit = float(nbytes), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
