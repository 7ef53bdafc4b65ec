"""Pictures of kept records: ``python -m benchmarks.plots RECORD.json PICTURE.svg``.

A record of ``benchmarks.live`` becomes bars on a logarithmic axis: how long a failover and a broker's failure take from
outside, by the number of partitions, Kafka's best life beside kframe's slowest and what the raw requests take alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kframe.whatif.files import check_file, new_figure, put_figure

TITLES: Final = {"failover": "a controller fails over", "broker-failure": "one of ten brokers fails"}
COLOURS: Final = {"Kafka 3.9.1": "#b0413e", "kframe": "#2f6f8f", "raw requests alone": "#b9c3c9"}


def draw(rows: Sequence[dict[str, Any]], out: Path) -> None:
    """A picture of the rows of ``benchmarks.live``."""
    figure = new_figure(9.0, 3.6)
    panels = figure.subplots(1, len(TITLES), sharey=True)
    for axes, (event, title) in zip(panels, TITLES.items(), strict=True):
        here = [row for row in rows if row["event"] == event]
        for place, row in enumerate(here):
            shown = {
                "Kafka 3.9.1": min(row["kafka"]) if row["kafka"] else None,
                "kframe": max(row["kframe"]),
                "raw requests alone": row["raw"],
            }
            for number, (who, seconds) in enumerate(shown.items()):
                if seconds is None:
                    continue
                at = place + (number - 1) * 0.27
                axes.bar(at, seconds, 0.25, color=COLOURS[who], label=who if place == 0 else None)
                axes.annotate(f"{seconds:.2g} s", (at, seconds), ha="center", va="bottom", fontsize=8)
        axes.set_title(title)
        axes.set_yscale("log")
        axes.set_xticks(range(len(here)), [f"{row['partitions']:,}\npartitions" for row in here])
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("seconds")
    panels[0].margins(y=0.1)
    figure.legend(*panels[0].get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=len(COLOURS))
    put_figure(figure, out)


def main(words: Sequence[str] | None = None) -> int:
    """Read a record, write a picture."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plots", description=__doc__)
    parser.add_argument("record", type=Path)
    parser.add_argument("picture", type=Path, help="a name that ends in .svg or .png; replaced if it is there")
    chosen = parser.parse_args(words)
    check_file(chosen.picture, (".svg", ".png"), force=True)
    draw(json.loads(chosen.record.read_text(encoding="utf-8"))["rows"], chosen.picture)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
