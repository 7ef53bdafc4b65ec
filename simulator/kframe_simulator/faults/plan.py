"""The plan of a run: actions as data that can be read, shrunk and replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeAlias

from kframe_simulator.simulation.options import Options

#: Draws a value. The arguments of an action are plain values that select among the items at play time.
Draw: TypeAlias = Callable[[Random], Any]


@dataclass(frozen=True, slots=True)
class Action:
    """One action: its time (ms), kind and arguments. ``repr`` is for people."""

    at_ms: float
    kind: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The action as plain values."""
        return {"at_ms": self.at_ms, "kind": self.kind, **self.arguments}

    @staticmethod
    def read(values: Mapping[str, Any]) -> Action:
        """Parse the result of ``to_dict``."""
        rest = {key: value for key, value in values.items() if key not in ("at_ms", "kind")}
        return Action(float(values["at_ms"]), str(values["kind"]), rest)


#: Clients start after the first controller has had time to create states.
CLIENTS_FROM_MS: Final = 300.0


def _pick(random: Random) -> int:
    """A number that selects one of any number of items."""
    return random.randrange(60)


def _pick_active(random: Random) -> int:
    """A number that selects the active controller."""
    return _pick(random) | 1


def _between(minimum: int, maximum: int) -> Draw:
    return lambda random: random.randint(minimum, maximum)


def _chance(probability: float) -> Draw:
    return lambda random: random.random() < probability


def _choice(*values: object) -> Draw:
    return lambda random: random.choice(values)


def _draw(*picks: str, **draws: Draw) -> Draw:
    """Arguments by name: ``picks`` are numbers that select items. ``draws`` have their own functions."""
    functions = dict.fromkeys(picks, _pick) | draws
    return lambda random: {name: function(random) for name, function in functions.items()}


#: The arguments of new assignments.
_ASSIGN: Final = _draw("pick", "shift", factor=_between(1, 3), count=_between(1, 2))

#: By class: the kinds of actions, their weights, and the functions that draw their arguments.
FAULTS: Final[Mapping[str, tuple[tuple[str, int, Draw], ...]]] = {
    "crash": (
        ("crash_broker", 3, _draw("broker")),
        ("crash_controller", 2, _draw("controller", effects=_between(0, 12))),
    ),
    "restart": (("start_broker", 6, _draw("broker")), ("start_controller", 5, _draw("controller"))),
    "bounce": (("bounce_broker", 3, _draw("broker")),),
    "pause": (
        ("pause_broker", 1, _draw("broker", for_ms=_between(50, 12_000))),
        ("pause_controller", 1, _draw("controller", for_ms=_between(50, 12_000))),
        ("pause_within", 2, _draw("controller", effects=_between(1, 12), for_ms=_between(200, 12_000))),
    ),
    "expiry": (("expire_controller", 1, _draw("controller")), ("expire_broker", 1, _draw("broker"))),
    "connection-loss": (
        ("lose_connection", 2, _draw("controller", when=_choice("before", "after"), writes=_between(0, 4))),
    ),
    "lagging-reads": (("lag", 2, _draw("controller", for_ms=_between(50, 3_000))),),
    "watches": (
        (
            "watch",
            2,
            _draw("controller", delay_ms=_choice(0, 20, 300, 2_000), repeat=_chance(0.5), for_ms=_between(500, 8_000)),
        ),
    ),
    "reply": (
        ("repeat_reply", 2, _draw("broker", "controller")),
        ("cut_reply", 1, _draw("broker", for_ms=_between(50, 12_000))),
    ),
    "half-applied": (("half_apply", 2, _draw("broker")),),
    "partition": (
        ("cut", 2, _draw("source", "target", both=_chance(0.3), for_ms=_between(100, 9_000))),
        ("cut_ensemble", 1, _draw("controller", for_ms=_between(50, 9_000))),
    ),
    "slow-broker": (("slow", 2, _draw("broker", for_ms=_between(50, 9_000))),),
    "log-dir": (("fail_log_dir", 1, _draw("broker")), ("swap_disks", 1, _draw("broker"))),
    "clock": (("jump", 1, _draw("controller", for_ms=_between(50, 12_000))),),
    "stale-alter": (("repeat_alter", 3, _draw("broker", "number")), ("repeat_shutdown", 2, _draw("broker"))),
    "races": (("race_write", 3, _draw(controller=_pick_active, writes=_between(1, 3))),),
    "held-proposal": (("delay_proposal", 4, _draw("broker", "fault")), ("lose_response", 2, _draw("broker"))),
    "deposed": (
        ("misdirect", 2, _draw(for_ms=_between(50, 4_000))),
        ("fail_failovers", 1, _draw(times=_between(1, 4))),
    ),
    "late-reply": (
        ("delay_reply", 2, _draw("broker", "controller", for_ms=_between(50, 6_000))),
        ("deliver_late", 3, _draw("number")),
    ),
    "failed-stop": (("fail_stop_replica", 2, _draw("broker")),),
    "crash-within": (("crash_in", 3, _draw("event", effects=_between(1, 9))),),
    "forged-alter": (("forge_proposal", 2, _draw("pick", "how")),),
    "operators": (
        ("reassign", 5, _ASSIGN),
        ("reassign_badly", 1, _draw("pick", "how")),
        ("reassign_to_isr", 2, _draw("pick")),
        ("bad_record", 1, _ASSIGN),
        ("cancel", 2, _draw("pick")),
        ("create_topic", 3, _draw(name=_between(0, 5), partitions=_between(1, 3), factor=_between(1, 3), shift=_pick)),
        ("create_partitions", 2, _ASSIGN),
        ("delete_topic", 2, _draw("pick")),
        ("elect", 3, _draw(unclean=_chance(0.4), all=_chance(0.5), pick=_pick)),
        ("config", 2, _draw("pick", unclean=_chance(0.5))),
        ("reassign_record", 2, _ASSIGN),
        ("election_record", 1, _draw("pick")),
        ("mark_deleted", 1, _draw("pick")),
        ("shut_down", 3, _draw("broker")),
        ("readdress", 1, _draw("broker")),
        ("drop_controller", 1, _draw()),
    ),
    "foreign-writer": (
        ("write_topic", 1, _ASSIGN),
        ("add_partition_on_failed_brokers", 1, _draw("pick")),
        ("forget_id", 1, _draw("pick")),
        ("rewrite_state", 1, _draw("pick")),
    ),
    "malformed-record": (("malform", 1, _draw("pick", "which")),),
    "malformed-frame": (("corrupt_response", 1, _draw("broker", "controller")),),
    "plugin": (("fail_selector", 1, _draw("times")),),
    "clients": (
        ("produce", 6, _draw("producer", "pick", count=_between(1, 4))),
        ("consume", 4, _draw("pick", committed=_chance(0.5))),
        ("repeat_produce", 1, _draw("number")),
    ),
}
#: The most sequences in a plan, and the kinds of sequences with their arguments.
SEQUENCES_MAX: Final = 3
SEQUENCES: Final[tuple[tuple[str, Draw], ...]] = (
    ("cancel_reassignment_and_crash", _draw("pick")),
    ("cancel_leaderless_reassignment", _draw("pick")),
    ("override_reassignment", _draw("pick")),
    ("reassign_without_state", _draw("pick", "next_step")),
    ("bounce_in_deletion", _draw("broker", for_ms=_between(50, 2_000))),
    ("repeat_earlier_responses", _draw("pick")),
    ("malform_at_completion", _draw("pick")),
)
#: A sequence of every plan with ``kframe.last.replica.hold``, because only that setting gives it a special outcome.
HOLD_LAST_SEQUENCE: Final = ("crash_in_shutdown", _draw("pick"))
#: A plan multiplies the weight of each kind of action by one of these factors.
INTENSITIES: Final = (0.3, 1.0, 1.0, 3.0)
#: The names of all fault classes.
CLASSES: Final = (*FAULTS, "sequences")
#: The class of each kind of action.
CLASS_OF: Final = {kind: name for name, kinds in FAULTS.items() for kind, _, _ in kinds} | {
    kind: "sequences" for kind, _ in (*SEQUENCES, HOLD_LAST_SEQUENCE)
}


def draw_plan(options: Options) -> tuple[Action, ...]:
    """The plan of a simulation. Every plan has operators and clients; a longer simulation has more client actions.

    Each plan draws a factor for every kind of action, so that some plans have many actions of a rare kind.
    """
    random = Random(f"plan/{options.seed}")
    names = dict.fromkeys((*options.faults, "operators", "restart"))
    kinds = [fault for name in names if name != "clients" for fault in FAULTS[name]]
    weights = [weight * random.choice(INTENSITIES) for _, weight, _ in kinds]
    now, actions = 500.0, []
    for kind, _, draw in random.choices(kinds, weights, k=options.actions):
        now += random.expovariate(1.0 / options.gap_ms)
        actions.append(Action(round(now, 1), kind, draw(random)))
    actions += [*_clients(random, options, now), *_sequences(options, now)]
    return tuple(sorted(actions, key=lambda action: action.at_ms))


def _sequences(options: Options, until_ms: float) -> list[Action]:
    random = Random(f"sequences/{options.seed}")
    chosen = random.choices(SEQUENCES, k=random.randint(0, SEQUENCES_MAX))
    if options.hold_last:
        chosen.append(HOLD_LAST_SEQUENCE)
    return [Action(round(random.uniform(500.0, until_ms), 1), kind, draw(random)) for kind, draw in chosen]


def _clients(random: Random, options: Options, until_ms: float) -> list[Action]:
    kinds = FAULTS["clients"] if options.producers else ()
    chosen = random.choices(kinds, [weight for _, weight, _ in kinds], k=options.actions // 2) if kinds else []
    return [Action(round(random.uniform(CLIENTS_FROM_MS, until_ms), 1), kind, draw(random)) for kind, _, draw in chosen]
