"""Metrics in Prometheus' text format.

Names are those that the Prometheus JMX exporter makes of Kafka's MBeans: lower case, ``_total`` for counters,
``_count`` and a ``quantile`` label for timers and histograms. The text is written here, because prometheus-client is
optional, and its registry would hold a second copy of values that the engine already counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kframe.ports.transport import WaitingTimes

#: The quantiles of Kafka's timers and histograms.
QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_LABELS: Final = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")


def summary(name: str, times: WaitingTimes, **labels: str) -> dict[str, float]:
    """A timer or histogram: its quantiles, and how many values it has had."""
    metrics = {
        labelled(name, **labels, quantile=label): value
        for label, value in zip(_LABELS, times.quantiles(QUANTILES), strict=True)
    }
    return {**metrics, labelled(f"{name}_count", **labels): times.count}


def labelled(name: str, **labels: str) -> str:
    """A metric's name with its labels."""
    pairs = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels.items())
    return f"{name}{{{pairs}}}" if pairs else name


def exposition(metrics: Mapping[str, float]) -> str:
    """``metrics`` in Prometheus' text format, version 0.0.4."""
    return "".join(f"{line}\n" for line in _lines(metrics))


def _lines(metrics: Mapping[str, float]) -> Iterator[str]:
    families: set[str] = set()
    for name, value in metrics.items():
        family, kind = _family(name)
        if family not in families:
            families.add(family)
            yield f"# TYPE {family} {kind}"
        yield f"{name} {value:.15g}"


def _family(name: str) -> tuple[str, str]:
    bare = name.partition("{")[0]
    if bare.endswith("_total"):
        return bare, "counter"
    if bare.endswith("_count"):
        return bare.removesuffix("_count"), "summary"
    return bare, "summary" if 'quantile="' in name else "gauge"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
