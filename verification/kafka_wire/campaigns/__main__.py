"""Run a campaign on a real cluster, and write its record and its page.

    python -m verification.kafka_wire.campaigns soak --minutes 60 --record docs/evidence/soak.json

The page is written beside the record, from it, after each step of the campaign. The exit code is 1 after a violation,
and 2 if a program is missing.
"""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from verification.kafka_wire.campaigns import faults, linearizability, parity, soak
from verification.support.evidence import run_facts


class Campaign(Protocol):
    """A module of this package."""

    __doc__: str | None

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the campaign. All campaigns have ``--record``."""

    def missing(self) -> str | None:
        """The requirement that this machine lacks, or None."""

    def run(
        self, options: argparse.Namespace, folder: Path, facts: Mapping[str, Any]
    ) -> Iterator[tuple[Mapping[str, Any], Sequence[str]]]:
        """Play the campaign. Yield the record and the violations so far, after each step.

        ``folder`` is for logs and data. ``facts`` of the run are part of the record.
        """

    def page(self, record: Mapping[str, Any]) -> str:
        """The page of a record in Markdown."""


CAMPAIGNS: Final[Mapping[str, Campaign]] = {
    "faults": faults,
    "linearizability": linearizability,
    "parity": parity,
    "soak": soak,
}


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="campaign", required=True)
    for name, campaign in CAMPAIGNS.items():
        text = campaign.__doc__ or ""
        command = commands.add_parser(
            name, help=text.partition("\n")[0], description=text, formatter_class=parser.formatter_class
        )
        command.add_argument("--record", type=Path, required=True, help="the record to write or extend, a .json file")
        campaign.add_options(command)
    options = parser.parse_args()
    campaign = CAMPAIGNS[options.campaign]
    if reason := campaign.missing():
        print(reason, file=sys.stderr)
        return 2
    facts = run_facts(f"python -m verification.kafka_wire.campaigns {shlex.join(sys.argv[1:])}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # Processes and mounts are removed then, too.
    violations: Sequence[str] = ()
    with tempfile.TemporaryDirectory() as folder:
        for record, violations_so_far in campaign.run(options, Path(folder), facts):
            violations = violations_so_far
            options.record.write_text(json.dumps(record, indent=1) + "\n")
            options.record.with_suffix(".md").write_text(campaign.page(record))
    print("\n".join(violations) or "no violation")
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main())
