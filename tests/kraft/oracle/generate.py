#!/usr/bin/env python3
"""Writes random cases for the KRaft oracle, one JSON object a line.

    ./generate.py --seed 1 --count 1000 > cases.jsonl
    ./generate.py --seed 1 --count 1000 --independent 16 > cases.jsonl   # 16 events, each on the same state

Clusters are small (1 to 6 brokers, 1 to 4 topics, replication factor 1 to 5), and every state that a controller can be
in is common: fenced, in controlled shutdown, directories offline or cordoned, ELRs, last-known leaders, reassignments.
The same arguments give the same cases.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable
from typing import Any

MIGRATING = "A" * 22
UNASSIGNED = "A" * 21 + "Q"
LOST = "A" * 21 + "g"
UNKNOWN_TOPIC = "unknown-topic" + "A" * 9

DIRECTORIES = 17  # lowest metadata.version with directories of replicas
ELR = 23
CORDONED = 30


def directory(broker: int, index: int) -> str:
    return f"b{broker}d{index}".ljust(22, "A")


def topic_id(name: str) -> str:
    return f"topic-{name}".ljust(22, "A")


class Cluster:
    """One random state. An event generator reads it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.level = rng.choice([33] * 5 + [30] * 3 + [25] * 3 + [26, 24, 23, 22, 17, 15, 11, 7])
        self.elr = self.level >= ELR and rng.random() < 0.6
        self.stores_elr = self.elr or (self.level >= ELR and rng.random() < 0.1)  # the feature may be off again
        self.brokers = self._brokers()
        self.topics = [self._topic(f"t{i}") for i in range(rng.randint(1, 4))]
        self.config = self._config()

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # Brokers

    def _brokers(self) -> list[dict[str, Any]]:
        count = self.rng.randint(1, 6)
        first = self.rng.choice([0, 1, 1, 1, 100])
        racked = self.chance(0.4)
        return [self._broker(first + i, racked) for i in range(count)]

    def _broker(self, broker_id: int, racked: bool) -> dict[str, Any]:
        rng = self.rng
        broker: dict[str, Any] = {"id": broker_id, "epoch": rng.randint(10, 900)}
        if racked and self.chance(0.95):
            broker["rack"] = rng.choice(["a", "b", "c"])
        kind = rng.choices(["active", "fenced", "shutdown", "fenced_shutdown"], [70, 18, 10, 2])[0]
        if kind.startswith("fenced"):
            broker["fenced"] = True
        if kind.endswith("shutdown"):
            broker["inControlledShutdown"] = True
            if kind == "shutdown" and self.chance(0.7):
                broker["controlledShutdownOffset"] = rng.randint(990, 1000)
        if kind == "active" and self.chance(0.3):
            broker["metadataOffset"] = rng.randint(980, 999)
        if kind != "fenced" and self.chance(0.25):
            broker["session"] = False
        if self.level >= DIRECTORIES and self.chance(0.97):
            indexes = rng.sample(range(3), rng.choice([1, 1, 2, 2, 3]))
            broker["directories"] = [directory(broker_id, index) for index in sorted(indexes)]
            if self.level >= CORDONED and self.chance(0.5):
                broker["cordoned"] = [d for d in broker["directories"] if self.chance(0.3)]
        return broker

    def is_active(self, broker: dict[str, Any]) -> bool:
        return not broker.get("fenced") and not broker.get("inControlledShutdown")

    def ids(self) -> list[int]:
        return [broker["id"] for broker in self.brokers]

    def broker_by_id(self, broker_id: int) -> dict[str, Any]:
        return next(broker for broker in self.brokers if broker["id"] == broker_id)

    def any_broker(self, predicate: Callable[[dict[str, Any]], Any] = lambda broker: True) -> dict[str, Any]:
        candidates = [broker for broker in self.brokers if predicate(broker)]
        return self.rng.choice(candidates or self.brokers)

    def some_brokers(self, count: int) -> list[int]:
        return self.rng.sample(self.ids(), min(count, len(self.brokers)))

    # Topics

    def _topic(self, name: str) -> dict[str, Any]:
        rng = self.rng
        factor = rng.randint(1, min(5, len(self.brokers)))
        topic: dict[str, Any] = {"name": name, "id": topic_id(name)}
        configs: dict[str, str] = {}
        if self.chance(0.6):
            configs["min.insync.replicas"] = str(rng.randint(1, 4))
        if self.chance(0.4):
            configs["unclean.leader.election.enable"] = rng.choice(["true", "true", "false"])
        if configs:
            topic["configs"] = configs
        min_isr = min(int(configs.get("min.insync.replicas", 2)), factor)
        topic["partitions"] = [self._partition(i, factor, min_isr) for i in range(rng.choice([1, 1, 2, 3]))]
        return topic

    def _partition(self, index: int, factor: int, min_isr: int) -> dict[str, Any]:
        rng = self.rng
        replicas, adding, removing = self._replicas(factor)
        partition: dict[str, Any] = {"partition": index, "replicas": replicas}
        directories = [self._replica_directory(replica) for replica in replicas]
        usable = [replica for replica, d in zip(replicas, directories, strict=True) if self._is_usable(replica, d)]
        partition.update(self._leadership(replicas, usable, adding, min_isr))
        partition["leaderEpoch"] = rng.randint(0, 20)
        partition["partitionEpoch"] = rng.randint(partition["leaderEpoch"], 40)
        if adding:
            partition["adding"] = adding
        if removing:
            partition["removing"] = removing
        if self.level >= DIRECTORIES and self.chance(0.97):
            partition["directories"] = directories
        if len(partition["isr"]) == 1 and self.chance(0.15):
            partition["recoveryState"] = "RECOVERING"
        return partition

    def _replicas(self, factor: int) -> tuple[list[int], list[int], list[int]]:
        current = self.some_brokers(factor)
        if not self.chance(0.3):
            return current, [], []
        target = self.some_brokers(factor if self.chance(0.7) else self.rng.randint(1, 5))
        adding = sorted(set(target) - set(current))
        removing = sorted(set(current) - set(target))
        return target + removing, adding, removing

    def _replica_directory(self, replica: int) -> str:
        broker = self.broker_by_id(replica)
        draw = self.rng.random()
        if draw < 0.80 and broker.get("directories"):
            return str(self.rng.choice(broker["directories"]))
        if draw < 0.88:
            return UNASSIGNED
        if draw < 0.96:
            return directory(replica, self.rng.randrange(3))
        return self.rng.choice([LOST, MIGRATING])

    def _is_usable(self, replica: int, replica_directory: str) -> bool:
        broker = self.broker_by_id(replica)
        online = broker.get("directories", [])
        return self.is_active(broker) and (
            self.level < DIRECTORIES
            or replica_directory in (UNASSIGNED, MIGRATING)
            or (replica_directory != LOST and (not online or replica_directory in online))
        )

    def _leadership(self, replicas: list[int], usable: list[int], adding: list[int], min_isr: int) -> dict[str, Any]:
        rng = self.rng
        if not usable or self.chance(0.15):
            return self._leaderless(replicas)
        members = [replica for replica in usable if self.chance(0.4 if replica in adding else 0.85)]
        members = members or [rng.choice(usable)]
        if self.chance(0.3):
            rng.shuffle(members)
        result: dict[str, Any] = {"isr": members, "leader": members[0] if self.chance(0.6) else rng.choice(members)}
        outside = [replica for replica in replicas if replica not in members]
        if self.stores_elr and len(members) < min_isr:
            elr = [replica for replica in outside if self.chance(0.6)]
            if elr:
                result["elr"] = sorted(elr)
        return result

    def _leaderless(self, replicas: list[int]) -> dict[str, Any]:
        rng = self.rng
        if not self.stores_elr:
            return {"isr": [rng.choice(replicas)], "leader": -1}
        if self.chance(0.15):
            return {"isr": rng.sample(replicas, rng.randint(1, len(replicas))), "leader": -1}
        result: dict[str, Any] = {"isr": [], "leader": -1}
        elr = [replica for replica in replicas if self.chance(0.4)]
        if elr:
            result["elr"] = sorted(elr)
        if self.chance(0.8):
            result["lastKnownElr"] = [rng.choice(replicas)]
        return result

    def any_partition(
        self, predicate: Callable[[dict[str, Any]], Any] = lambda partition: True
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        candidates = [
            (topic, partition) for topic in self.topics for partition in topic["partitions"] if predicate(partition)
        ]
        if not candidates:
            topic = self.rng.choice(self.topics)
            return topic, self.rng.choice(topic["partitions"])
        return self.rng.choice(candidates)

    # Config

    def _config(self) -> dict[str, Any]:
        rng = self.rng
        config: dict[str, Any] = {"metadata.version": self.level}
        if self.elr:
            config["eligible.leader.replicas.version"] = 1
        if self.chance(0.3):
            config["min.insync.replicas"] = rng.randint(1, 3)
        if self.chance(0.15):
            config["unclean.leader.election.enable"] = True
        dynamic: dict[str, str] = {}
        if self.elr or self.chance(0.3):
            dynamic["min.insync.replicas"] = str(rng.randint(1, 3))
        if self.chance(0.15):
            dynamic["unclean.leader.election.enable"] = rng.choice(["true", "false"])
        if dynamic:
            config["dynamic"] = {"": dynamic}
        config["random.seed"] = rng.randint(0, 1 << 30)
        return config


class Events:
    """Random events on a cluster. Most are valid when they come first."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.rng = cluster.rng
        self.weights: dict[Callable[[], dict[str, Any]], int] = {
            self.broker_fenced: 12,
            self.broker_unfenced: 10,
            self.heartbeat: 8,
            self.broker_registered: 12,
            self.controlled_shutdown_begun: 7,
            self.broker_unregistered: 5,
            self.fence_stale_broker: 2,
            self.alter_partition: 14,
            self.elect_leaders: 7,
            self.maybe_balance_leaders: 3,
            self.unclean_check: 3,
            self.reassign: 10,
            self.cancel: 5,
            self.list_reassignments: 1,
            self.create_topics: 7,
            self.create_partitions: 4,
            self.delete_topics: 2,
            self.set_config: 4,
            self.failover: 1,
            self.update_features: 1,
        }
        if cluster.level >= DIRECTORIES:
            self.weights[self.directories_offline] = 6
            self.weights[self.assign_directories] = 6
        if cluster.level >= CORDONED:
            self.weights[self.directories_cordoned] = 1

    def any(self) -> dict[str, Any]:
        generators = list(self.weights)
        generator = self.rng.choices(generators, [self.weights[generator] for generator in generators])[0]
        return {"type": generator.__name__, **generator()}

    def broker_fenced(self) -> dict[str, Any]:
        return {"broker": self.cluster.any_broker(lambda broker: not broker.get("fenced"))["id"]}

    def broker_unfenced(self) -> dict[str, Any]:
        return {"broker": self.cluster.any_broker(lambda broker: broker.get("fenced"))["id"]}

    def controlled_shutdown_begun(self) -> dict[str, Any]:
        broker = self.cluster.any_broker(self.cluster.is_active)
        if broker.get("fenced"):
            return {"type": "heartbeat", "broker": broker["id"], "wantShutDown": True}
        return {"broker": broker["id"]}

    def broker_registered(self) -> dict[str, Any]:
        cluster, rng = self.cluster, self.rng
        broker = cluster.any_broker()
        event: dict[str, Any] = {"broker": broker["id"]}
        if cluster.chance(0.08):
            event["broker"] = max(cluster.ids()) + 1
            event["directories"] = [directory(event["broker"], 0)]
        if cluster.chance(0.5):
            event["clean"] = True
        if cluster.chance(0.85):
            event["expireSession"] = True
        if cluster.chance(0.1):
            event["incarnation"] = f"broker{broker['id']}".ljust(22, "A")
        if cluster.chance(0.1):
            event["requestVersion"] = rng.randint(1, 3)
        if cluster.level >= DIRECTORIES and cluster.chance(0.3):
            event["directories"] = [
                directory(event["broker"], i) for i in sorted(rng.sample(range(4), rng.randint(1, 3)))
            ]
        return event

    def broker_unregistered(self) -> dict[str, Any]:
        return {"broker": self.cluster.any_broker()["id"] if self.cluster.chance(0.95) else 99}

    def heartbeat(self) -> dict[str, Any]:
        cluster = self.cluster
        broker = cluster.any_broker()
        event: dict[str, Any] = {"broker": broker["id"]}
        if cluster.chance(0.15):
            event["wantFence"] = True
        if cluster.chance(0.35):
            event["wantShutDown"] = True
        if cluster.chance(0.3):
            event["offset"] = self.rng.randint(0, 1000)
        if cluster.chance(0.05):
            event["epoch"] = broker["epoch"] - 1
        if broker.get("directories") and cluster.chance(0.25):
            event["offlineDirectories"] = self._some_directories(broker)
        if broker.get("directories") and cluster.chance(0.2):
            event["cordonedDirectories"] = self._some_directories(broker)
        return event

    def _some_directories(self, broker: dict[str, Any]) -> list[str]:
        online = broker["directories"]
        return sorted(self.rng.sample(online, self.rng.randint(1, len(online))))

    def fence_stale_broker(self) -> dict[str, Any]:
        return {}

    def failover(self) -> dict[str, Any]:
        return {}

    def directories_offline(self) -> dict[str, Any]:
        broker = self.cluster.any_broker(lambda broker: broker.get("directories"))
        if not broker.get("directories"):
            return {"broker": broker["id"], "directories": [directory(broker["id"], 0)]}
        return {"broker": broker["id"], "directories": self._some_directories(broker)}

    def directories_cordoned(self) -> dict[str, Any]:
        return self.directories_offline()

    def assign_directories(self) -> dict[str, Any]:
        cluster, rng = self.cluster, self.rng
        broker = cluster.any_broker()
        assignments: list[dict[str, Any]] = []
        for _ in range(rng.randint(1, 3)):
            topic, partition = cluster.any_partition(lambda p: broker["id"] in p["replicas"] or cluster.chance(0.1))
            target = rng.choice(
                (broker.get("directories") or [UNASSIGNED]) * 2 + [directory(broker["id"], rng.randrange(4)), LOST]
            )
            name = topic["name"] if cluster.chance(0.97) else UNKNOWN_TOPIC
            if all((name, partition["partition"]) != (other["topic"], other["partition"]) for other in assignments):
                assignments.append({"directory": target, "topic": name, "partition": partition["partition"]})
        return {"broker": broker["id"], "assignments": assignments}

    def alter_partition(self) -> dict[str, Any]:
        cluster, rng = self.cluster, self.rng
        requests: list[dict[str, Any]] = []
        topic, partition = cluster.any_partition(lambda p: p["leader"] >= 0)
        leader = partition["leader"]
        requests.append(self._alteration(topic, partition))
        while cluster.chance(0.3):
            topic, partition = cluster.any_partition(lambda p: p["leader"] == leader)
            requests.append(self._alteration(topic, partition))
        event: dict[str, Any] = {
            "broker": leader if leader >= 0 and cluster.chance(0.95) else rng.choice(cluster.ids()),
            "partitions": requests,
        }
        if cluster.chance(0.03):
            event["epoch"] = 1
        if cluster.chance(0.1):
            event["requestVersion"] = 2
        return event

    def _alteration(self, topic: dict[str, Any], partition: dict[str, Any]) -> dict[str, Any]:
        cluster, rng = self.cluster, self.rng
        pool = [replica for replica in partition["replicas"] if replica != partition["leader"]]
        isr = ([partition["leader"]] if partition["leader"] >= 0 else []) + [r for r in pool if cluster.chance(0.7)]
        if cluster.chance(0.05):
            isr.append(rng.choice(cluster.ids()))
        if cluster.chance(0.03):
            isr = isr[1:]
        if cluster.chance(0.3):
            rng.shuffle(isr)
        request: dict[str, Any] = {"topic": topic["name"], "partition": partition["partition"], "isr": isr}
        if cluster.chance(0.04):
            request["topic"] = UNKNOWN_TOPIC
        if cluster.chance(0.03):
            request["partition"] = 17
        if cluster.chance(0.08):
            request["leaderEpoch"] = partition["leaderEpoch"] + rng.choice([-1, 1])
        if cluster.chance(0.08):
            request["partitionEpoch"] = partition["partitionEpoch"] + rng.choice([-1, 1])
        if cluster.chance(0.1) or (partition.get("recoveryState") and cluster.chance(0.5)):
            request["recoveryState"] = "RECOVERING"
        if isr and cluster.chance(0.1):
            member = isr[-1]
            request["isr"] = [*isr[:-1], {"id": member, "epoch": rng.choice([-1, 5])}]
        return request

    def elect_leaders(self) -> dict[str, Any]:
        cluster = self.cluster
        event: dict[str, Any] = {"election": self.rng.choice(["preferred", "unclean"])}
        if cluster.chance(0.6):
            requests: list[dict[str, Any]] = []
            for _ in range(self.rng.randint(1, 3)):
                topic, partition = cluster.any_partition()
                name = topic["name"] if cluster.chance(0.96) else "missing"
                request: dict[str, Any] = {
                    "topic": name,
                    "partition": partition["partition"] if cluster.chance(0.97) else 9,
                }
                if request not in requests:
                    requests.append(request)
            event["partitions"] = requests
        return event

    def maybe_balance_leaders(self) -> dict[str, Any]:
        return {}

    def unclean_check(self) -> dict[str, Any]:
        return {}

    def reassign(self) -> dict[str, Any]:
        cluster, rng = self.cluster, self.rng
        requests: list[dict[str, Any]] = []
        for _ in range(rng.choice([1, 1, 1, 2])):
            topic, partition = cluster.any_partition()
            replicas = cluster.some_brokers(len(partition["replicas"]) if cluster.chance(0.5) else rng.randint(1, 5))
            if cluster.chance(0.1):
                replicas = rng.sample(partition["replicas"], len(partition["replicas"]))
            if cluster.chance(0.03):
                replicas = [*replicas, 99]
            if cluster.chance(0.03):
                replicas = replicas + replicas[:1]
            if cluster.chance(0.02):
                replicas = []
            request: dict[str, Any] = {
                "topic": topic["name"] if cluster.chance(0.97) else "missing",
                "partition": partition["partition"],
                "replicas": replicas,
            }
            if cluster.chance(0.1):
                request["replicas"] = None
            if all(
                other["partition"] != request["partition"] or other["topic"] != request["topic"] for other in requests
            ):
                requests.append(request)
        event: dict[str, Any] = {"partitions": requests}
        if cluster.chance(0.2):
            event["allowReplicationFactorChange"] = False
        return event

    def cancel(self) -> dict[str, Any]:
        topic, partition = self.cluster.any_partition(lambda p: p.get("adding") or p.get("removing"))
        return {"partitions": [{"topic": topic["name"], "partition": partition["partition"]}]}

    def list_reassignments(self) -> dict[str, Any]:
        if self.cluster.chance(0.5):
            return {}
        topic = self.rng.choice(self.cluster.topics)
        return {"topics": [{"name": topic["name"], "partitions": [p["partition"] for p in topic["partitions"]]}]}

    def create_topics(self) -> dict[str, Any]:
        cluster, rng = self.cluster, self.rng
        topics: list[dict[str, Any]] = []
        for i in range(rng.choice([1, 1, 2])):
            topic: dict[str, Any] = {
                "name": f"new{i}" if cluster.chance(0.9) else rng.choice(["t0", "bad/name", "a.b"])
            }
            if any(other["name"] == topic["name"] for other in topics):
                continue
            if cluster.chance(0.4):
                factor = rng.randint(1, 4)
                topic["assignments"] = [
                    cluster.some_brokers(factor if cluster.chance(0.95) else 1) for _ in range(rng.randint(1, 3))
                ]
                if cluster.chance(0.05):
                    topic["assignments"][0] = [*topic["assignments"][0], 99]
                if cluster.chance(0.05):
                    topic["partitions"] = 2
            else:
                topic["partitions"] = rng.choice([-1, 1, 1, 2, 3, 5, 8, 0])
                topic["replicationFactor"] = rng.choice([-1, 1, 2, 3, 3, 4, 0])
            if cluster.chance(0.3):
                topic["configs"] = {"min.insync.replicas": str(rng.randint(1, 3))}
            topics.append(topic)
        return {"topics": topics}

    def create_partitions(self) -> dict[str, Any]:
        cluster, rng = self.cluster, self.rng
        # Kafka uses the factor of the first partition in a hash table, so all partitions must have the same.
        equal = [topic for topic in cluster.topics if len({len(p["replicas"]) for p in topic["partitions"]}) == 1]
        topic = rng.choice(equal or cluster.topics)
        count = len(topic["partitions"])
        request: dict[str, Any] = {
            "name": topic["name"] if equal and cluster.chance(0.95) else "missing",
            "count": count + rng.choice([0, 1, 1, 2, 4, 7]),
        }
        if cluster.chance(0.4):
            factor = len(topic["partitions"][0]["replicas"])
            added = max(request["count"] - count, 0) if cluster.chance(0.9) else 1
            request["assignments"] = [cluster.some_brokers(factor if cluster.chance(0.9) else 1) for _ in range(added)]
        return {"topics": [request]}

    def delete_topics(self) -> dict[str, Any]:
        names = self.rng.sample([topic["name"] for topic in self.cluster.topics], 1)
        return {"topics": names if self.cluster.chance(0.9) else [*names, UNKNOWN_TOPIC]}

    def set_config(self) -> dict[str, Any]:
        cluster, rng = self.cluster, self.rng
        kind = rng.choice(["topic", "topic", "topic", "cluster", "cluster", "broker"])
        names: dict[str, Callable[[], str]] = {
            "topic": lambda: rng.choice(cluster.topics)["name"],
            "cluster": lambda: "",
            "broker": lambda: str(rng.choice(cluster.ids())),
        }
        name = names[kind]()
        key = rng.choice(["min.insync.replicas"] * 3 + ["unclean.leader.election.enable", "retention.ms"])
        values: dict[str, Callable[[], str]] = {
            "min.insync.replicas": lambda: str(rng.randint(1, 4)),
            "unclean.leader.election.enable": lambda: rng.choice(["true", "false"]),
            "retention.ms": lambda: "1000",
        }
        value = values[key]()
        event: dict[str, Any] = {
            "resource": "topic" if kind == "topic" else "broker",
            "name": name,
            "configs": {key: value if cluster.chance(0.8) else None},
        }
        if cluster.chance(0.15) and event["configs"][key] is not None:
            event["replaceAll"] = True
        return event

    def update_features(self) -> dict[str, Any]:
        level = 0 if self.cluster.elr else 1
        return {
            "features": {"eligible.leader.replicas.version": level},
            "upgradeType": "upgrade" if level else "safe_downgrade",
        }


def make_case(rng: random.Random, case_id: str, independent: int) -> dict[str, Any]:
    cluster = Cluster(rng)
    events = Events(cluster)
    case: dict[str, Any] = {
        "id": case_id,
        "config": cluster.config,
        "brokers": cluster.brokers,
        "topics": cluster.topics,
    }
    if independent:
        case["independent"] = True
    case["events"] = [events.any() for _ in range(independent or rng.choice([1, 1, 1, 2, 3, 5]))]
    return case


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True, help="number of cases")
    parser.add_argument(
        "--independent",
        type=int,
        default=0,
        metavar="N",
        help="N events a case, each on the state of the case; without it one to five in sequence",
    )
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    for number in range(arguments.count):
        case = make_case(rng, f"s{arguments.seed}-{number}", arguments.independent)
        sys.stdout.write(json.dumps(case, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
