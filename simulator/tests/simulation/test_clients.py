"""Acknowledged records of simulated clients. The tests say which may be lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kframe.errors import ErrorCode
from kframe_simulator import Options, Simulation
from kframe_simulator.broker import serving
from kframe_simulator.broker.log import Log
from kframe_simulator.broker.messages import Fetch
from kframe_simulator.faults.plan import Action
from kframe_simulator.simulation.options import ProducerOptions, TopicOptions
from kframe_simulator.simulation.record_history import Value
from verification.simulator.at_rest import QUIET

KEY = ("t", 0)
IDEMPOTENT, TRANSACTIONS, PLAIN, LEADER_ONLY, NO_PRODUCER = range(5)
OPTIONS = replace(
    QUIET,
    brokers=(1, 2, 3),
    controllers=1,
    topics=(TopicOptions("t", ((1, 2, 3),), unclean=False, min_insync=2),),
    producers=(
        ProducerOptions(-1, idempotent=True),
        ProducerOptions(-1, idempotent=True, transactional=True),
        ProducerOptions(-1),
        ProducerOptions(1),
        ProducerOptions(0),
    ),
)


def produce(at_ms: float, producer: int = IDEMPOTENT, count: int = 3) -> Action:
    return Action(at_ms, "produce", {"producer": producer, "pick": 0, "count": count})


def crash(at_ms: float, broker: int) -> Action:
    return Action(at_ms, "crash_broker", {"broker": broker - 1})


def lose(at_ms: float, broker: int) -> Action:
    """The log directory with the log of t-0 fails."""
    return Action(at_ms, "fail_log_dir", {"broker": broker - 1})


def run(*plan: Action, options: Options = OPTIONS) -> Simulation:
    simulation = Simulation(options, plan)
    simulation.run()
    return simulation


def numbers(simulation: Simulation) -> list[int]:
    """The records in the leader's log."""
    log = simulation.brokers[simulation.ensemble.rows[KEY].leader].model.disks.logs[KEY]
    return [record.value.number for record in log.records if isinstance(record.value, Value)]


@pytest.mark.parametrize("producer", [IDEMPOTENT, TRANSACTIONS, PLAIN, LEADER_ONLY, NO_PRODUCER])
def test_records_written_without_faults_are_acknowledged(producer: int) -> None:
    simulation = run(produce(500.0, producer))
    assert numbers(simulation) == [1, 2, 3]
    assert len(simulation.watch.record_history.promises[KEY]) == (3 if producer < LEADER_ONLY else 0)
    assert simulation.watch.violations == []


def test_idempotent_producer_retries_without_duplicates() -> None:
    """Requests are lost with their leader. The leader detects duplicates by their sequence."""
    repeats = [Action(at_ms, "repeat_produce", {"number": 0}) for at_ms in (9_000.0, 9_500.0, 14_000.0)]
    simulation = run(produce(500.0), produce(8_000.0, count=4), crash(8_010.0, 1), *repeats)
    assert simulation.ensemble.rows[KEY].leader in (2, 3)
    assert numbers(simulation) == [1, 2, 3, 4, 5, 6, 7]
    assert simulation.watch.violations == []


def test_produce_under_min_isr_is_not_acknowledged() -> None:
    simulation = run(crash(400.0, 2), crash(401.0, 3), produce(9_000.0, count=1))
    assert simulation.watch.violations == []
    assert simulation.counts["given up"] + len(simulation.watch.record_history.promises[KEY]) == 1


@pytest.mark.parametrize("unclean", [True, False])
def test_unclean_election_may_lose_acknowledged_records(unclean: bool) -> None:
    """The last in-sync replica dies. If it is allowed, a replica with a shorter log becomes leader."""
    topic = replace(OPTIONS.topics[0], unclean=unclean, min_insync=1)
    alone = [crash(400.0, 2), crash(401.0, 3), produce(9_000.0), crash(12_000.0, 1)]
    others = [Action(19_000.0, "start_broker", {"broker": number}) for number in (1, 1)]
    simulation = run(*alone, *others, produce(26_000.0), options=replace(OPTIONS, topics=(topic,)))
    assert simulation.counts["promises released"] == (3 if unclean else 0)
    assert simulation.counts["lost, acks=-1"] == (3 if unclean else 0)
    assert simulation.watch.violations == []


def test_disk_loss_of_sole_isr_member_may_lose_acknowledged_records() -> None:
    topic = replace(OPTIONS.topics[0], assignments=((1,),), min_insync=1)
    simulation = run(produce(500.0), lose(5_000.0, 1), options=replace(OPTIONS, topics=(topic,)))
    assert simulation.counts["lost, acks=-1"] == 3
    assert simulation.watch.violations == []


def test_disk_loss_of_isr_member_loses_no_records() -> None:
    simulation = run(produce(500.0), lose(9_000.0, 1), produce(20_000.0))
    assert simulation.counts["lost, acks=-1"] == 0
    assert len(simulation.watch.record_history.promises[KEY]) == 6
    assert simulation.watch.violations == []


def test_acks_1_records_may_be_lost() -> None:
    """Broker 1 dies before a follower has fetched the record."""
    simulation = run(produce(500.0, LEADER_ONLY, count=1), crash(520.0, 1))
    assert (simulation.counts["acknowledged, acks=1"], simulation.counts["lost, acks=1"]) == (1, 1)
    assert simulation.watch.violations == []


# -- Brokers that break a rule are detected.


def test_early_acknowledgement_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker treats acks=all as acks=1."""
    plain = serving.Serving._replicated
    monkeypatch.setattr(serving.Serving, "_replicated", lambda self, key, written: plain(self, key, written) or written)
    simulation = run(produce(500.0, count=1), crash(520.0, 1))
    assert {violation.number for violation in simulation.watch.violations} == {"I10"}


def test_accepted_duplicate_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kframe_simulator.broker.producers.Producers.duplicate", lambda self, record: -1)
    monkeypatch.setattr(
        "kframe_simulator.broker.producers.Producers.check_sequence", lambda self, record: ErrorCode.NONE
    )
    simulation = run(produce(500.0, count=1), Action(9_000.0, "repeat_produce", {"number": 0}))
    assert {violation.number for violation in simulation.watch.violations} == {"I11"}


def test_missing_truncation_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broker 1 restarts with a record that no other broker has, and keeps it. Its requests lack the epoch of the
    record."""
    monkeypatch.setattr(Log, "latest_epoch", property(lambda self: -1))
    alone = produce(500.0, LEADER_ONLY, count=1), crash(520.0, 1)
    simulation = run(*alone, produce(8_000.0), Action(12_000.0, "start_broker", {"broker": 0}))
    assert "I11" in {violation.number for violation in simulation.watch.violations}


def test_read_of_open_transaction_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def readable(log: Log, request: Fetch) -> int:
        return log.end

    monkeypatch.setattr(serving, "_readable", readable)
    reads = [Action(560.0 + 20.0 * index, "consume", {"pick": 0, "committed": True}) for index in range(10)]
    simulation = run(produce(500.0, TRANSACTIONS), *reads)
    assert "I11" in {violation.number for violation in simulation.watch.violations}
