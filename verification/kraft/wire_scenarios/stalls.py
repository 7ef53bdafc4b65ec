"""Whether the machine was too slow for a scenario, whose sessions end in real time."""

from __future__ import annotations

from typing import Any, Final

#: The steps in which a session may end although its end is not awaited.
LASTING_STEPS: Final = frozenset({"advance", "start", "restart", "controller_restart"})
SHUTDOWN_STEPS: Final = frozenset({"controlled_shutdown", "clean_stop"})
STARTING_STEPS: Final = frozenset({"register", "start", "restart", "heartbeat_resume", "unfence"})


class MachineStalled(Exception):
    """The machine was too slow for the sessions of the scenario, so that its trace says nothing."""


def check_sessions(trace: dict[str, Any]) -> None:
    """Raises MachineStalled if sessions ended in another order, or in another step, than the scenario says."""
    stopped: set[int] = set()
    for step in trace["steps"]:
        ((kind, argument),) = step["step"].items()
        fenced = _fenced(step)
        if kind == "heartbeat_stop":
            order = [broker for broker in argument if broker in fenced]
            if [broker for broker in fenced if broker in argument] != order:
                raise MachineStalled(f"brokers were fenced in the order {fenced}, expected {argument}")
        elif kind == "unclean_stop":
            stopped |= set(argument)
        if kind not in LASTING_STEPS and stopped.intersection(fenced):
            raise MachineStalled(f"the session of one of brokers {sorted(stopped)} ended in {kind}")
        if kind in SHUTDOWN_STEPS and isinstance(argument, dict) and not argument.get("wait", True):
            stopped |= set(argument["brokers"])
        elif kind in STARTING_STEPS:
            stopped -= {entry["id"] if isinstance(entry, dict) else entry for entry in argument}


def _fenced(step: dict[str, Any]) -> list[int]:
    """The brokers that a step fences, in order."""
    return [
        record["data"]["brokerId"]
        for batch in step["batches"]
        for record in batch["records"]
        if record["type"] == "BROKER_REGISTRATION_CHANGE_RECORD" and record["data"].get("fenced") == 1
    ]
