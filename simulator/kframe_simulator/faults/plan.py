"""The plan of a run: actions as data that can be read, shrunk and replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeAlias

from kframe_simulator.simulation.options import Options

#: Arguments of an action: plain values that select among the items at play time.
Arguments: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Action:
    """One action: its time (ms), kind and arguments. ``repr`` is for people."""

    at_ms: float
    kind: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def shown(self) -> dict[str, Any]:
        """The action as plain values."""
        return {"at_ms": self.at_ms, "kind": self.kind, **self.arguments}

    @staticmethod
    def read(shown: Mapping[str, Any]) -> Action:
        """Parse the result of ``shown``."""
        rest = {key: value for key, value in shown.items() if key not in ("at_ms", "kind")}
        return Action(float(shown["at_ms"]), str(shown["kind"]), rest)


#: Clients start after the first controller has had time to create states.
CLIENTS_FROM_MS: Final = 300.0


def _pick(random: Random) -> int:
    """A number that selects one of any number of items."""
    return random.randrange(60)


def _one(*names: str) -> Callable[[Random], Arguments]:
    return lambda random: {name: _pick(random) for name in names}


def _for_a_while(*names: str, most_ms: int = 12_000) -> Callable[[Random], Arguments]:
    return lambda random: {name: _pick(random) for name in names} | {"for_ms": random.randint(50, most_ms)}


def _connection(random: Random) -> Arguments:
    return {"controller": _pick(random), "when": random.choice(("before", "after")), "writes": random.randint(0, 4)}


def _watch(random: Random) -> Arguments:
    return {
        "controller": _pick(random),
        "delay_ms": random.choice((0, 20, 300, 2_000)),
        "repeat": random.random() < 0.5,
        "for_ms": random.randint(500, 8_000),
    }


def _stop(random: Random) -> Arguments:
    return {"controller": _pick(random), "effects": random.randint(0, 12)}


def _race(random: Random) -> Arguments:
    return {"controller": _pick(random) | 1, "writes": random.randint(1, 3)}


def _failovers(random: Random) -> Arguments:
    return {"times": random.randint(1, 4)}


def _crash_in(random: Random) -> Arguments:
    return {"event": _pick(random), "effects": random.randint(1, 9)}


def _pause_within(random: Random) -> Arguments:
    return {"controller": _pick(random), "effects": random.randint(1, 12), "for_ms": random.randint(200, 12_000)}


def _cut(random: Random) -> Arguments:
    return {
        "source": _pick(random), "target": _pick(random), "both": random.random() < 0.3,
        "for_ms": random.randint(100, 9_000),
    }  # fmt: skip


def _create(random: Random) -> Arguments:
    return {"name": random.randrange(6), "partitions": random.randint(1, 3), "factor": random.randint(1, 3),
            "shift": _pick(random)}  # fmt: skip


def _reassign(random: Random) -> Arguments:
    return {
        "pick": _pick(random),
        "shift": _pick(random),
        "factor": random.randint(1, 3),
        "count": random.randint(1, 2),
    }


def _elect(random: Random) -> Arguments:
    return {"unclean": random.random() < 0.4, "all": random.random() < 0.5, "pick": _pick(random)}


def _config(random: Random) -> Arguments:
    return {"pick": _pick(random), "unclean": random.random() < 0.5}


def _produce(random: Random) -> Arguments:
    return {"producer": _pick(random), "pick": _pick(random), "count": random.randint(1, 4)}


def _consume(random: Random) -> Arguments:
    return {"pick": _pick(random), "committed": random.random() < 0.5}


#: By class: the kinds of actions, their weights, and the functions that draw their arguments.
FAULTS: Final[Mapping[str, tuple[tuple[str, int, Callable[[Random], Arguments]], ...]]] = {
    "crash": (("crash_broker", 3, _one("broker")), ("crash_controller", 2, _stop)),
    "restart": (("start_broker", 6, _one("broker")), ("start_controller", 5, _one("controller"))),
    "bounce": (("bounce_broker", 3, _one("broker")),),
    "pause": (
        ("pause_broker", 1, _for_a_while("broker")),
        ("pause_controller", 1, _for_a_while("controller")),
        ("pause_within", 2, _pause_within),
    ),
    "expiry": (("expire_controller", 1, _one("controller")), ("expire_broker", 1, _one("broker"))),
    "connection-loss": (("lose_connection", 2, _connection),),
    "lagging-reads": (("lag", 2, _for_a_while("controller", most_ms=3_000)),),
    "watches": (("watch", 2, _watch),),
    "reply": (("repeat_reply", 2, _one("broker", "controller")), ("cut_reply", 1, _for_a_while("broker"))),
    "half-applied": (("half_apply", 2, _one("broker")),),
    "partition": (("cut", 2, _cut), ("cut_ensemble", 1, _for_a_while("controller", most_ms=9_000))),
    "slow-broker": (("slow", 2, _for_a_while("broker", most_ms=9_000)),),
    "log-dir": (("fail_log_dir", 1, _one("broker")), ("swap_disks", 1, _one("broker"))),
    "clock": (("jump", 1, _for_a_while("controller")),),
    "stale-alter": (("repeat_alter", 3, _one("broker", "number")), ("repeat_shutdown", 2, _one("broker"))),
    "races": (("race_write", 3, _race),),
    "held-proposal": (("hold_proposal", 4, _one("broker", "deed")), ("lose_answer", 2, _one("broker"))),
    "deposed": (("misdirect", 2, _for_a_while(most_ms=4_000)), ("fail_failovers", 1, _failovers)),
    "late-reply": (
        ("delay_reply", 2, _for_a_while("broker", "controller", most_ms=6_000)),
        ("tell_late", 3, _one("number")),
    ),
    "failed-stop": (("fail_stop", 2, _one("broker")),),
    "crash-within": (("crash_in", 3, _crash_in),),
    "forged-alter": (("forge_proposal", 2, _one("pick", "how")),),
    "operators": (
        ("reassign", 5, _reassign),
        ("reassign_badly", 1, _one("pick", "how")),
        ("reassign_to_isr", 2, _one("pick")),
        ("bad_record", 1, _reassign),
        ("cancel", 2, _one("pick")),
        ("create_topic", 3, _create),
        ("create_partitions", 2, _reassign),
        ("delete_topic", 2, _one("pick")),
        ("elect", 3, _elect),
        ("config", 2, _config),
        ("reassign_record", 2, _reassign),
        ("election_record", 1, _one("pick")),
        ("mark_deleted", 1, _one("pick")),
        ("shut_down", 3, _one("broker")),
        ("readdress", 1, _one("broker")),
        ("drop_controller", 1, _one()),
    ),
    "foreign-writer": (
        ("write_topic", 1, _reassign),
        ("write_topic_on_the_dead", 1, _one("pick")),
        ("forget_id", 1, _one("pick")),
        ("rewrite_state", 1, _one("pick")),
    ),
    "malformed-record": (("malform", 1, _one("pick", "which")),),
    "malformed-frame": (("garble", 1, _one("broker", "controller")),),
    "plugin": (("fail_selector", 1, _one("times")),),
    "clients": (
        ("produce", 6, _produce),
        ("consume", 4, _consume),
        ("repeat_produce", 1, _one("number")),
    ),
}
#: The most sequences in a plan, and the kinds of sequences with their arguments.
SEQUENCES_MOST: Final = 3
SEQUENCES: Final[tuple[tuple[str, Callable[[Random], Arguments]], ...]] = (
    ("give_up_move", _one("pick")),
    ("give_up_leaderless_move", _one("pick")),
    ("override_at_join", _one("pick")),
    ("move_unborn", _one("pick", "then")),
    ("bounce_in_deletion", _for_a_while("broker", most_ms=2_000)),
    ("recall_answers", _one("pick")),
    ("spoil_end", _one("pick")),
)
#: A plan multiplies the weight of each kind of action by one of these factors.
INTENSITIES: Final = (0.3, 1.0, 1.0, 3.0)
#: The names of all fault classes.
CLASSES: Final = (*FAULTS, "sequences")
#: The class of each kind of action.
CLASS_OF: Final = {kind: name for name, kinds in FAULTS.items() for kind, _, _ in kinds} | {
    kind: "sequences" for kind, _ in SEQUENCES
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
    chosen = random.choices(SEQUENCES, k=random.randint(0, SEQUENCES_MOST))
    return [Action(round(random.uniform(500.0, until_ms), 1), kind, draw(random)) for kind, draw in chosen]


def _clients(random: Random, options: Options, until_ms: float) -> list[Action]:
    kinds = FAULTS["clients"] if options.producers else ()
    chosen = random.choices(kinds, [weight for _, weight, _ in kinds], k=options.actions // 2) if kinds else []
    return [Action(round(random.uniform(CLIENTS_FROM_MS, until_ms), 1), kind, draw(random)) for kind, _, draw in chosen]
