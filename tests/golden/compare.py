#!/usr/bin/env python3
# In the style of the recorder of the golden traces, not of this project.
# ruff: noqa: B905, E501, PLW2901
# mypy: ignore-errors
# fmt: off
"""Compare a trace with a golden one (the rules, and why, are in COMPARE.md).

    compare.py GOLDEN.json OTHER.json

Exit 0: equal; 1: they differ, or one breaks an order constraint; 2: not comparable.
"""
import argparse
import json
import sys

STATE = ("replicas", "adding_replicas", "removing_replicas", "leader", "isr", "leader_epoch", "controller_epoch",
         "leader_recovery_state", "partition_epoch")
DELETING = -2           # leader, and StopReplica leader epoch, of a topic that is being deleted


class Trace:
    """One trace and what follows from its steps so far: stored state, who was greeted, what is being deleted."""

    def __init__(self, trace):
        self.steps = trace["steps"]
        self.stored = {}            # partition -> entry as last stored in a step
        self.seen = {}              # partition -> ISR first heard of, for partitions that no step has stored yet
        self.deleting = set()       # partitions that metadata calls deleted
        self.greeted = {}           # broker -> controller epoch of the first request since its registration
        self.epochs = {}            # (broker, api, partition) -> (leader epoch, partition epoch) of the last request

    def look(self, step):
        """What requests tell about partitions that no step has stored: their state from before the controller."""
        for request in step["requests"]:
            for name, entry in request["partitions"].items():
                if request["api"] != "StopReplica" and name not in self.stored:
                    self.seen.setdefault(name, entry["isr"])
                if request["api"] == "UpdateMetadata":
                    (self.deleting.add if entry["leader"] == DELETING else self.deleting.discard)(name)

    def settle(self, step):
        self.stored.update(step["partitions"])
        for topic in step["topics_deleted"]:
            for table in (self.stored, self.seen):
                for name in [name for name in table if topic_of(name) == topic]:
                    del table[name]
            self.deleting = {name for name in self.deleting if topic_of(name) != topic}
            self.epochs = {key: value for key, value in self.epochs.items() if topic_of(key[2]) != topic}

    # -- constraints that hold within one trace

    def broken(self, step):
        kind, argument = action(step)
        if kind.startswith("broker_"):
            for spec in argument:
                self.greeted.pop(spec["id"] if isinstance(spec, dict) else spec, None)
        for broker, requests in by_broker(step).items():
            yield from self._broken_for(step, kind, broker, requests)

    def _broken_for(self, step, kind, broker, requests):
        leading, stopped, deleted = {}, set(), set()
        for position, request in enumerate(requests):
            api, where = request["api"], f"broker {broker}, request {position + 1} ({request['api']})"
            greeting = self.greeted.get(broker) != request["controller_epoch"]
            self.greeted[broker] = request["controller_epoch"]
            if greeting:
                if api != "UpdateMetadata" or broker not in request["live_brokers"]:
                    yield f"{where}: the first request in a controller epoch or registration must be UpdateMetadata with all brokers"
                elif kind in ("elect", "broker_startup", "broker_bounce"):
                    last = [r for r in requests if r["api"] == "UpdateMetadata"][-1]
                    if request["live_brokers"] != last["live_brokers"]:
                        yield f"{where}: greets with brokers {request['live_brokers']}, later {last['live_brokers']}"
            if api == "LeaderAndIsr":
                following = next((r for r in requests[position:] if r["api"] == "UpdateMetadata"), None)
                leaders = {entry["leader"] for entry in request["partitions"].values()}
                if following and set(request["live_leaders"]) != leaders & set(following["live_brokers"]):
                    yield f"{where}: live_leaders {request['live_leaders']} are not the live ones among {sorted(leaders)}"
            for name, entry in request["partitions"].items():
                label = f"{where}: {name}"
                if api == "StopReplica":
                    if entry["delete_partition"]:
                        deleted.add(name)
                        if name not in stopped:
                            yield f"{label}: deleted before it is stopped"
                    stopped.add(name)
                    continue
                if api == "LeaderAndIsr":
                    if name in deleted:
                        yield f"{label}: after StopReplica has deleted it"
                    leading.setdefault(name, entry["leader_epoch"])
                    leading[name] = max(leading[name], entry["leader_epoch"])
                elif not greeting and entry["leader"] != DELETING and broker not in entry.get("offline_replicas", ()):
                    before = (self.stored.get(name) or {}).get("leader_epoch")
                    before = -1 if before is None and name not in self.seen else before
                    own = any(name in r["partitions"] and r["partitions"][name]["leader_epoch"] == entry["leader_epoch"]
                              for r in requests if r["api"] == "LeaderAndIsr")
                    if own and before is not None and entry["leader_epoch"] > before and \
                            leading.get(name, -1) < entry["leader_epoch"]:
                        yield f"{label}: metadata names leader epoch {entry['leader_epoch']} before LeaderAndIsr does"
                if entry["leader"] != DELETING:
                    epochs = entry["leader_epoch"], entry["partition_epoch"]
                    last = self.epochs.get((broker, api, name), epochs)
                    if epochs < last:
                        yield f"{label}: leader and partition epoch go back from {last} to {epochs}"
                    self.epochs[broker, api, name] = epochs


# -- small things

def topic_of(partition):
    return partition.rpartition("-")[0]


def action(step):
    (kind, argument), = step["step"].items()
    return kind, argument


def by_broker(step):
    brokers = {}
    for request in step["requests"]:
        brokers.setdefault(request["broker"], []).append(request)
    return dict(sorted(brokers.items()))


def show(value):
    return json.dumps(value)


def fields(golden, other, names):
    return ", ".join(f"{name} {show(golden.get(name))} / {show(other.get(name))}"
                     for name in names if golden.get(name) != other.get(name))


def state(entry):
    """Storage's entry; one without leadership state is all nulls, however it is written."""
    return entry if entry.get("leader") is not None else {**dict.fromkeys(STATE), **{
        name: entry.get(name) for name in ("replicas", "adding_replicas", "removing_replicas")}}


def shape(entry):
    """What can be said of a partition whose replicas were drawn by lot."""
    return {**entry, "replicas": len(set(entry["replicas"])), "isr": len(entry["isr"] or []),
            "leader": entry["leader"] == entry["replicas"][0]}


def final(step, api):
    """{(broker, partition): the last thing that this step's requests of this kind say}"""
    out = {}
    for request in step["requests"]:
        if request["api"] == api:
            for name, entry in request["partitions"].items():
                entry = dict(entry, controller_epoch=request["controller_epoch"])
                if api == "LeaderAndIsr":       # a broker creates the log if it is told so once
                    entry["is_new"] = entry["is_new"] or out.get((request["broker"], name), {}).get("is_new", False)
                if api == "StopReplica":
                    out[request["broker"], name, entry["delete_partition"]] = entry
                else:
                    out[request["broker"], name] = entry
    return out


class Comparison:
    def __init__(self, golden, other):
        self.golden, self.other = Trace(golden), Trace(other)
        self.lots = set()           # topics with automatic assignment
        self.differences = []

    def run(self):
        if len(self.golden.steps) != len(self.other.steps):
            self.differences.append(f"{len(self.golden.steps)} / {len(self.other.steps)} steps")
        for number, (golden, other) in enumerate(zip(self.golden.steps, self.other.steps), 1):
            where = f"step {number} {show(golden['step'])}"
            if golden["step"] != other["step"]:
                self.differences.append(f"{where}: other has {show(other['step'])}")
                return
            for name, trace, step in (("golden", self.golden, golden), ("other", self.other, other)):
                trace.look(step)
                self.differences += [f"{where}: order, in {name}: {text}" for text in trace.broken(step)]
            self.lots |= {topic["name"] for topic in golden["step"].get("create_topics", []) if "assignments" not in topic}
            for compare in (self.storage, self.response, self.contents, self.audience, self.stopped):
                self.differences += [f"{where}: {text}" for text in compare(golden, other)]
            self.golden.settle(golden)
            self.other.settle(other)

    def by_lot(self, partition):
        return topic_of(partition) in self.lots

    def storage(self, golden, other):
        if sorted(golden["topics_deleted"]) != sorted(other["topics_deleted"]):
            yield f"topics_deleted {golden['topics_deleted']} / {other['topics_deleted']}"
        for name in sorted(set(golden["partitions"]) | set(other["partitions"])):
            mine, its = golden["partitions"].get(name), other["partitions"].get(name)
            if mine is None or its is None:
                yield f"stored {name}: {'unchanged' if mine is None else 'changed'} / {'unchanged' if its is None else 'changed'}"
                continue
            mine, its = (shape(mine), shape(its)) if self.by_lot(name) else (state(mine), state(its))
            text = fields(mine, its, STATE)
            if text:
                yield f"stored {name}: {text}"

    def response(self, golden, other):
        def plain(value):
            if isinstance(value, dict):
                return {key: sorted(item) if key == "remaining" else item for key, item in value.items()}
            return value
        mine, its = plain(golden["response"]), plain(other["response"])
        if mine != its:
            yield f"response {show(mine)} / {show(its)}"

    def contents(self, golden, other):
        for api in ("LeaderAndIsr", "UpdateMetadata"):
            mine, its = final(golden, api), final(other, api)
            for broker, name in sorted(set(mine) | set(its)):
                if self.by_lot(name):
                    continue
                a, b = mine.get((broker, name)), its.get((broker, name))
                if a is None or b is None:
                    yield f"{api} to broker {broker} for {name}: {'none' if a is None else 'sent'} / {'none' if b is None else 'sent'}"
                elif text := fields(a, b, sorted(a)):
                    yield f"{api} to broker {broker} for {name}, last: {text}"
            for topic in sorted(self.lots):
                count = [len({key for key in sent if topic_of(key[1]) == topic}) for sent in (mine, its)]
                if count[0] != count[1]:
                    yield f"{api} for {topic} (assigned by lot): {count[0]} / {count[1]} broker-partition pairs"

    def audience(self, golden, other):
        """Who hears which controller, and which brokers each is told to be alive in the end."""
        mine, its = by_broker(golden), by_broker(other)
        for broker in sorted(set(mine) | set(its)):
            told = [[r["live_brokers"] for r in side.get(broker, []) if r["api"] == "UpdateMetadata"][-1:] for side in (mine, its)]
            if told[0] != told[1]:
                yield f"UpdateMetadata to broker {broker}: last live_brokers {show(told[0])} / {show(told[1])}"
            epochs = [sorted({r["controller_epoch"] for r in side.get(broker, [])}) for side in (mine, its)]
            if epochs[0] != epochs[1] and all(epochs):
                yield f"requests to broker {broker}: controller epochs {epochs[0]} / {epochs[1]}"

    def stopped(self, golden, other):
        mine, its = final(golden, "StopReplica"), final(other, "StopReplica")
        for key in sorted(set(mine) | set(its)):
            broker, name, delete = key
            label = f"StopReplica({'delete' if delete else 'keep'}) to broker {broker} for {name}"
            if self.by_lot(name):
                continue
            if key not in mine or key not in its:
                yield f"{label}: {'sent' if key in mine else 'none'} / {'sent' if key in its else 'none'}"
                continue
            a, b = mine[key]["leader_epoch"], its[key]["leader_epoch"]
            if a != b:
                yield f"{label}: leader_epoch {a} / {b}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("golden")
    parser.add_argument("other")
    options = parser.parse_args()
    traces = []
    for path in (options.golden, options.other):
        try:
            with open(path, encoding="utf-8") as file:
                traces.append(json.load(file))
            if traces[-1].get("schema") != "kframe.trace/v1":
                raise ValueError("not a kframe.trace/v1")
        except (OSError, ValueError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 2
    if traces[0]["scenario"] != traces[1]["scenario"]:
        print(f"traces of two scenarios: {traces[0]['scenario']} / {traces[1]['scenario']}", file=sys.stderr)
        return 2
    comparison = Comparison(*traces)
    try:
        comparison.run()
    except (KeyError, TypeError, AttributeError) as error:
        print(f"malformed trace: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    for difference in comparison.differences:
        print(difference)
    if comparison.differences:
        print(f"{traces[0]['scenario']}: {len(comparison.differences)} differences (golden {traces[0]['controller']} / other {traces[1]['controller']})")
    return 1 if comparison.differences else 0


if __name__ == "__main__":
    sys.exit(main())
