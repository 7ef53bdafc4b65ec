"""The same incident under Kafka's own controller and under kframe causes the same log lines, apart from listed
differences.

The controller takes the role, brokers register, and a topic is created. Its leader is killed and restarted, a preferred
leader is elected, and the topic is deleted. The lines at INFO and above are compared step by step, without times,
controller ids, and controller and broker epochs. Leaders, ISRs, leader epochs and partition epochs must be equal.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from kframe.testing.waiting import until
from verification.kafka_wire.broker_metadata import create
from verification.kafka_wire.instances import InstanceProcess
from verification.zookeeper.handover import ClusterFixture
from verification.zookeeper.kafka import Cluster, KafkaClients
from verification.zookeeper.servers import ServerHandle
from verification.zookeeper.sessions import session

LOGS: Final = ("controller", "state-change")
QUIET_S: Final = 1.0
STEPS: Final = ("takeover", "arrival", "creation", "failure", "return", "election", "deletion")

#: Lines of Kafka's controller that kframe does not write, and the reasons. Without time, level and prefix.
LEFT_OUT: Final[Mapping[str, str]] = {
    r"Sending UpdateMetadata request to brokers Set\(\) for 0 partitions": "no request is sent",
    r"New topics: \[Set\(\)\], deleted topics: \[Set\(\)\], .*": "nothing has changed: no topic came or went",
    r"Controller \d+ connected to .* for sending state change requests": "one line for each cut that heals instead",
    r"Controller \d+'s connection to broker .* was unsuccessful": "one line for each cut instead, with its queue",
    r"Controller \d+ epoch \d+ fails to send request .*": "one line for each cut instead, with its queue",
    r"Controller \d+ fails to send a request to broker .*": "one line for each cut instead, with its queue",
    "Registering handlers": "a step without a fact: watches are set when storage is opened",
    "(Deleting|Initializing|Fetching) (log dir|isr|controller|topic) .*": "a step without a fact",
    r"Initializing manager with initial deletions: .*": "List of topics to be deleted says it",
    r"(Creating|Updating) FeatureZNode at path: .*": "the store's business",
    r"Currently shutting brokers in the cluster: Set\(\)": "a new controller knows of none",
    r"Partitions undergoing preferred replica election: ": "there are none",
    r"Partitions that completed preferred replica election: ": "there are none",
    r"Skipping preferred replica election for partitions due to topic deletion: ": "there are none",
    r"Resuming preferred replica election for partitions: ": "there are none",
    r"Starting replica leader election \(PREFERRED\) for partitions  triggered by ZkTriggered": "there are none",
    "Starting the controller scheduler": "kframe has none",
    r"Starting|Stopped|Shutting down|Shutdown completed": "threads of the broker that is controller",
    r"Add \d+ partitions and deleted \d+ partitions from metadata cache .*": "the broker's own line",
}
#: Lines of kframe that Kafka does not write, and the reasons.
OWN: Final[Mapping[str, str]] = {
    r"kframe \S+ is a candidate for controller as .*": "who it is, and what it speaks",
    r"ISR for partition .* updated to .*": "Kafka writes it at DEBUG, which its default settings put into the file",
    r"any ZooKeeper client may change .*|PLAINTEXT://.*: no TLS, .*": "warnings on what is risky",
    r"Broker 1 has been elected as the controller, .*": "Kafka writes it at DEBUG, as above",
    r"Processed \w+.* in [0-9.]+ ms: .*": "cause, duration and size of each event",
    r"Controller \d+'s connection to broker .* is cut: .*": "once for each cut",
    r"Controller \d+ connected to .* again .*": "once for each cut that heals",
    r"Controller \d+ gives up its connection .*": "once for each cut that ends with the broker's registration",
}
#: Lines that depend on the start time of a broker, and on the time at which its death is noticed.
TIMING: Final = re.compile(r"Controller .*(connect|fails to send)|New topics: ")
_LINE: Final = re.compile(r"^\[[-0-9 :,]+\] (INFO|WARN|ERROR|FATAL) (.*) \(([\w.$]+)\)$", re.MULTILINE)
_SETS: Final = re.compile(r"(?:Hash|ListBuffer|mutable\.)?(Set|Map)\d?\(([^()]*)\)")


@dataclass(slots=True)
class Incident:
    """A cluster and its controller. ``read`` returns the present content of a log."""

    fixture: ClusterFixture
    read: Callable[[str], str]
    offsets: dict[str, int] = field(default_factory=dict)

    def lines(self, log: str) -> Counter[str]:
        """The lines since the last call. Parts that differ between runs are removed."""
        text = self.read(log)
        fresh, self.offsets[log] = text[self.offsets.get(log, 0) :], len(text)
        return Counter(f"{level} {normalised(message)}" for level, message, _ in _LINE.findall(fresh))

    def led(self, leader: int, isr: list[int]) -> bool:
        """Wait until t-0 has this leader and ISR. Return success."""
        return until(lambda: self.fixture.leader_and_isr("t") == (leader, isr))

    def has_written(self, log: str, words: str, times: int = 1) -> bool:
        """Wait until a log has ``words`` since the last ``lines``. Return success."""
        return until(lambda: self.read(log)[self.offsets.get(log, 0) :].count(words) >= times)

    def await_quiet(self) -> None:
        """Wait until no log has grown for ``QUIET_S``. The two logs of an event are written one after the other."""
        sizes: list[int] = []
        while sizes != (sizes := [len(self.read(log)) for log in LOGS]):
            time.sleep(QUIET_S)


def normalised(message: str) -> str:
    """A line without controller id, controller epochs and broker epochs. Sets are in ascending order."""
    message = re.sub(r"^\[(Topic Deletion Manager|Controller id=)[ ]?\d+( epoch=\d+)?\]", r"[\1\2]", message)
    message = re.sub(r"epoch=\d+\]", "epoch=E]", message)
    message = re.sub(r"controllerId=\d+", "controllerId=ID", message)
    message = re.sub(r"ControllerEpoch:\d+", "ControllerEpoch:E", message)
    message = re.sub(r"as the new controller with epoch \d+", "as the new controller with epoch E", message)
    # Kafka also logs the version of the controller epoch znode, which kframe's core does not know.
    message = re.sub(r"\d+ (successfully elected .* to) \d+( and epoch zk .*)?", r"ID \1 E", message)
    message = re.sub(r"(\d+) -> \d+", r"\1 -> E", message)
    message = re.sub(r"topicId=\S+|Some\([-\w]{22}\)", "ID", message)
    return _SETS.sub(lambda match: f"{match[1]}({', '.join(sorted(match[2].split(', ')))})", message)


def matches(pattern: str, line: str) -> bool:
    """Whether a pattern matches a line without its level and prefix."""
    return re.fullmatch(rf"\w+ (\[[^\]]*\] )?(?:{pattern})", line) is not None


def unexplained(lines: Counter[str], passed_over: Mapping[str, str]) -> Counter[str]:
    """Lines that no pattern matches."""
    return Counter(
        {line: count for line, count in lines.items() if not any(matches(pattern, line) for pattern in passed_over)}
    )


def unused(logged: Mapping[tuple[str, str], Counter[str]], passed_over: Mapping[str, str]) -> list[str]:
    """Patterns that match no line."""
    lines = [line for counted in logged.values() for line in counted]
    return [
        pattern
        for pattern in passed_over
        if not TIMING.match(pattern) and not any(matches(pattern, line) for line in lines)
    ]


def take_over(incident: Incident) -> None:
    ready = re.compile("triggered by ZkTriggered|Processed Reelect")
    assert until(lambda: ready.search(incident.read("controller")) is not None)


def arrive(incident: Incident) -> None:
    for broker_id in (2, 3):
        broker = incident.fixture.cluster.brokers[broker_id]
        broker.start()
        broker.await_started()
        assert incident.has_written("controller", "Updated broker epochs cache", broker_id - 1)


def create_topic(incident: Incident) -> None:
    create(incident.fixture.client, "t", [[3, 2]])
    assert incident.led(3, [3, 2])
    assert incident.has_written("state-change", "for 1 partitions")


def fail(incident: Incident) -> None:
    incident.fixture.cluster.lose(3, incident.fixture.client)
    assert incident.led(2, [2])
    assert incident.has_written("controller", "Updated broker epochs cache")
    assert incident.has_written("state-change", "for 1 partitions", 2)


def come_back(incident: Incident) -> None:
    broker = incident.fixture.cluster.brokers[3]
    broker.start()
    broker.await_started()
    assert incident.has_written("controller", "Updated broker epochs cache")
    assert incident.led(2, [2, 3])
    assert incident.has_written("state-change", "Sending UpdateMetadata request to brokers", 4)


def elect(incident: Incident) -> None:
    incident.fixture.clients.request("elect", topic="t", partition=0)
    assert incident.led(3, [2, 3])


def delete(incident: Incident) -> None:
    incident.fixture.client.create("/admin/delete_topics/t")
    assert incident.has_written("controller", "Deletion of topic t successfully completed")


ACTS: Final = dict(zip(STEPS, (take_over, arrive, create_topic, fail, come_back, elect, delete), strict=True))


def happen(incident: Incident) -> dict[tuple[str, str], Counter[str]]:
    """Run the incident. Return the lines of each log by step."""
    lines = {}
    for step in STEPS:
        ACTS[step](incident)
        incident.await_quiet()
        for log in LOGS:
            lines[step, log] = incident.lines(log)
    return lines


@pytest.fixture
def kafka(zookeeper: ServerHandle, tmp_path: Path) -> Iterator[Incident]:
    """Broker 1 is Kafka's controller. Brokers 2 and 3 are not started yet."""
    yield from _running(zookeeper, tmp_path / "kafka", "/incident-kafka", None)


@pytest.fixture
def kframe(zookeeper: ServerHandle, tmp_path: Path) -> Iterator[Incident]:
    """The same brokers, after kframe has taken the role from broker 1."""
    yield from _running(zookeeper, tmp_path / "kframe", "/incident-kframe", 1000)


def _running(server: ServerHandle, folder: Path, chroot: str, controller_id: int | None) -> Iterator[Incident]:
    with session(server.address) as root:
        root.create(chroot)
    with ExitStack() as stack:
        cluster = Cluster(folder, f"{server.address}{chroot}")
        stack.callback(cluster.kill)
        client = stack.enter_context(session(cluster.zookeeper))
        cluster.brokers[1].start()
        cluster.brokers[1].await_started()
        read: Callable[[str], str] = cluster.brokers[1].log
        if controller_id is not None:
            settings = {"auto.leader.rebalance.enable": "false"}
            instance = InstanceProcess(
                cluster.zookeeper, folder / "instance", controller_id, "--takeover", settings=settings
            )
            stack.callback(instance.kill)
            instance.await_ready(active=True)
            read = _reader(instance)
        clients = stack.enter_context(closing(KafkaClients(folder / "clients", cluster.brokers[1].address)))
        yield Incident(ClusterFixture(cluster, clients, client, folder), read)


def _reader(instance: InstanceProcess) -> Callable[[str], str]:
    return lambda log: (instance.folder / "logs" / f"{log}.log").read_text()


@pytest.mark.extended
def test_the_same_incident_makes_the_same_lines(kafka: Incident, kframe: Incident) -> None:
    theirs, ours = happen(kafka), happen(kframe)
    differences = {
        step: {"Kafka alone": dict(expected - written), "kframe alone": dict(written - expected)}
        for step in theirs
        if (expected := unexplained(theirs[step], LEFT_OUT)) != (written := unexplained(ours[step], OWN))
    }
    assert not differences, json.dumps(
        {" ".join(step): difference for step, difference in differences.items()}, indent=2
    )
    assert (unused(theirs, LEFT_OUT), unused(ours, OWN)) == ([], [])
