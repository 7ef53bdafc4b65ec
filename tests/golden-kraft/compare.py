#!/usr/bin/env python3
# In the style of the recorder of the golden traces, not of this project.
# ruff: noqa: B905, E501, SIM115
# mypy: ignore-errors
# fmt: off
"""Compare a KRaft trace with a golden one (the rules, and why, are in COMPARE.md).

    compare.py GOLDEN.json OTHER.json

Traces may be compressed (.json.gz). Exit 0: equal; 1: they differ; 2: not comparable.
"""
import argparse
import gzip
import json
import sys

ATOMIC = ("create_topics", "create_partitions", "delete_topics", "reassign", "cancel", "set_config", "replace_config", "feature",
          "assign_directories")
SETS = ("eligibleLeaderReplicas", "lastKnownElr", "elr", "last_known_elr", "logDirs", "cordonedLogDirs", "renewers")
TRANSACTION = ("BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD")

# Records that Kafka writes in hash order: within a run of one kind they are sorted by this key.
SORTED = {
    "PARTITION_CHANGE_RECORD": lambda data: (data["topicId"], data["partitionId"]),
    "PARTITION_RECORD": lambda data: (data["topicId"], data["partitionId"]),
    "CONFIG_RECORD": lambda data: (data["resourceType"], data["resourceName"], data["name"]),
    "FEATURE_LEVEL_RECORD": lambda data: (data["name"] != "metadata.version", data["name"]),
    "REMOVE_TOPIC_RECORD": lambda data: data["topicId"],
    "CLEAR_ELR_RECORD": lambda data: data["topicName"],
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": lambda data: data["id"],
    "CLIENT_QUOTA_RECORD": lambda data: (json.dumps(data["entity"], sort_keys=True), data["key"]),
    "ACCESS_CONTROL_ENTRY_RECORD": lambda data: json.dumps({**data, "id": ""}, sort_keys=True),
}


def canonical(records):
    """The records with each run of one kind sorted where its order depends on chance. The sort is stable."""
    result, run = [], []
    for record in records:
        if run and (run[-1]["type"] != record["type"] or record["type"] not in SORTED):
            result += in_order(run)
            run = []
        run.append(record)
    return result + in_order(run)


def in_order(run):
    key = SORTED.get(run[0]["type"]) if run else None
    return sorted(run, key=lambda record: key(record["data"])) if key else run


def as_sets(value):
    """Lists that are sets, sorted."""
    if isinstance(value, dict):
        return {key: sorted(item, key=str) if key in SETS and isinstance(item, list) else as_sets(item) for key, item in value.items()}
    return [as_sets(item) for item in value] if isinstance(value, list) else value


def load(path):
    opened = gzip.open(path, "rt", encoding="utf-8") if str(path).endswith(".gz") else open(path, encoding="utf-8")
    with opened as file:
        trace = json.load(file)
    if trace.get("schema") != "kframe.trace-kraft/v1":
        raise ValueError("not a kframe.trace-kraft/v1")
    return trace


def action(step):
    (kind, argument), = step["step"].items()
    return kind, argument


def show(value):
    return json.dumps(value)


def describe(record):
    return f"{record['type']} {show(record['data'])}"


def fields(golden, other):
    """The fields in which two dicts differ."""
    return ", ".join(f"{name} {show(golden.get(name))} / {show(other.get(name))}"
                     for name in sorted(set(golden) | set(other)) if golden.get(name) != other.get(name))


def relevant(step):
    """The step's records that are compared: no control records, no no-ops, no registration of the controller itself."""
    return [record for batch in step["batches"] if not batch.get("control") for record in batch["records"]
            if record["type"] not in ("NO_OP_RECORD", "REGISTER_CONTROLLER_RECORD")]


class Comparison:
    def __init__(self, golden, other):
        self.golden, self.other = golden, other
        self.automatic = set()              # topics whose replicas Kafka drew at random
        self.racks = {}                     # broker -> rack, of the golden trace
        self.epochs = {}                    # broker -> newest broker epoch of the other trace
        self.differences = []

    def run(self):
        golden, other = self.golden["steps"], self.other["steps"]
        if len(golden) != len(other):
            self.differences.append(f"{len(golden)} / {len(other)} steps")
        for number, (mine, its) in enumerate(zip(golden, other), 1):
            where = f"step {number} {show(mine['step'])[:200]}"
            if mine["step"] != its["step"]:
                self.differences.append(f"{where}: other has {show(its['step'])}")
                return
            self.note(mine)
            for check in (self.records, self.atomic, self.control, self.broker_epochs, self.snapshot, self.response):
                self.differences += [f"{where}: {text}" for text in check(mine, its)]
        self.differences += [f"image: {text}" for text in self.image()]

    def note(self, step):
        kind, argument = action(step)
        if kind == "create_topics":
            topics = argument["topics"] if isinstance(argument, dict) else argument
            self.automatic |= {topic["name"] for topic in topics if "assignments" not in topic}
        if kind == "create_partitions":
            entries = argument if isinstance(argument, list) else [argument]
            self.automatic |= {entry["topic"] for entry in entries if "assignments" not in entry}
        for record in relevant(step):
            if record["type"] == "REGISTER_BROKER_RECORD":
                self.racks[record["data"]["brokerId"]] = record["data"]["rack"]

    # -- records

    def records(self, golden, other):
        mine, its = (canonical(relevant(step)) for step in (golden, other))
        for index in range(max(len(mine), len(its))):
            a = mine[index] if index < len(mine) else None
            b = its[index] if index < len(its) else None
            if a is None or b is None:
                yield f"record {index + 1}: {describe(a) if a else 'none'} / {describe(b) if b else 'none'}"
            elif a["type"] != b["type"]:
                yield f"record {index + 1}: {describe(a)} / {describe(b)}"
                return                      # everything behind it is out of step
            else:
                if a["version"] != b["version"]:
                    yield f"record {index + 1} {a['type']}: version {a['version']} / {b['version']}"
                text = fields(self.shape(a), self.shape(b))
                if text:
                    yield f"record {index + 1} {self.name(a)}: {text}"

    def name(self, record):
        data = record["data"]
        if "partitionId" in data:
            return f"{record['type']} {data['topicId']}-{data['partitionId']}"
        for key in ("brokerId", "name", "topicId", "topicName"):
            if key in data:
                return f"{record['type']} {data[key]}"
        return record["type"]

    def shape(self, record):
        """What is compared of a record: all of it, except where replicas are drawn at random."""
        data = as_sets(record["data"])
        if record["type"] == "PARTITION_RECORD" and data["topicId"].partition("#")[0] in self.automatic:
            return self.placement(data)
        return data

    def placement(self, data):
        replicas = data["replicas"]
        shaped = {key: value for key, value in data.items() if key not in ("replicas", "isr", "leader", "directories")}
        racks = [self.racks.get(id) for id in replicas]
        shaped.update({"distinct replicas": len(set(replicas)), "distinct racks": len(set(racks)),
                       "isr members": len(data["isr"]), "isr in replica order": data["isr"] == [id for id in replicas if id in data["isr"]],
                       "leader is first of isr": data["leader"] == (data["isr"] or [-1])[0],
                       "directories of brokers": [str(name).partition(".")[0] == str(id) or name in ("UNASSIGNED", "MIGRATING")
                                                  for name, id in zip(data.get("directories", []), replicas)]})
        return shaped

    # -- batches

    def atomic(self, golden, other):
        """An administrative request is one batch or one transaction of the log."""
        kind, _ = action(golden)
        if kind in ATOMIC:
            batches = [batch for batch in other["batches"] if relevant({"batches": [batch]})]
            types = [record["type"] for record in relevant(other)]
            if len(batches) > 1 and not (types[0] == TRANSACTION[0] and types[-1] == TRANSACTION[1]):
                yield f"{len(batches)} batches in other; the records of {kind} must be one batch or one transaction"
        mine, its = ([len(relevant({"batches": [batch]})) for batch in step["batches"]] for step in (golden, other))
        mine, its = ([count for count in counts if count] for counts in (mine, its))
        if mine != its:
            yield f"records in each batch: {mine} / {its}"

    def control(self, golden, other):
        """A leader change in the log for each time that the controller took the role."""
        mine, its = ([record["type"] for batch in step["batches"] if batch.get("control") for record in batch["records"]]
                     for step in (golden, other))
        if mine != its:
            yield f"control records {mine} / {its}"

    def broker_epochs(self, golden, other):
        mine, its = golden.get("broker_epochs", {}), other.get("broker_epochs", {})
        if set(mine) != set(its):
            yield f"new broker epochs {sorted(mine)} / {sorted(its)}"
            return
        for name, epoch in its.items():
            broker = name.partition(".")[0]
            if epoch <= self.epochs.get(broker, -1):
                yield f"broker epoch {name} is {epoch}, the one before is {self.epochs.get(broker)}"
            self.epochs[broker] = epoch
        for name in mine:
            a, b = (step["broker_epochs"][name] - registered(step, name) for step in (golden, other))
            if a != b:
                yield f"broker epoch {name} less the offset of its RegisterBroker record: {a} / {b}"

    # -- the rest

    def snapshot(self, golden, other):
        if "snapshot" not in golden or "snapshot" not in other:
            if ("snapshot" in golden) != ("snapshot" in other):
                yield f"snapshot: {'written' if 'snapshot' in golden else 'none'} / {'written' if 'snapshot' in other else 'none'}"
            return
        mine, its = (arranged(step["snapshot"]["records"]) for step in (golden, other))
        for index in range(max(len(mine), len(its))):
            a = mine[index] if index < len(mine) else None
            b = its[index] if index < len(its) else None
            if a is None or b is None or a["type"] != b["type"]:
                yield f"snapshot record {index + 1}: {describe(a) if a else 'none'} / {describe(b) if b else 'none'}"
                return
            text = fields({"version": a["version"], **self.shape(a)}, {"version": b["version"], **self.shape(b)})
            if text:
                yield f"snapshot {self.name(a)}: {text}"

    def response(self, golden, other):
        if golden["response"] != other["response"]:
            yield f"response {show(golden['response'])} / {show(other['response'])}"

    def image(self):
        mine, its = as_sets(self.golden["image"]), as_sets(self.other["image"])
        for section in sorted(set(mine) | set(its)):
            a, b = mine.get(section), its.get(section)
            if a == b:
                continue
            if not isinstance(a, dict) or not isinstance(b, dict):
                yield f"{section} {show(a)} / {show(b)}"
                continue
            for key in sorted(set(a) | set(b)):
                if section == "partitions" and key.rpartition("-")[0] in self.automatic:
                    continue
                if a.get(key) != b.get(key):
                    if isinstance(a.get(key), dict) and isinstance(b.get(key), dict):
                        yield f"{section} {key}: {fields(a[key], b[key])}"
                    else:
                        yield f"{section} {key}: {show(a.get(key))} / {show(b.get(key))}"


def registered(step, name):
    """Offset of the RegisterBroker record that brought this broker epoch."""
    for batch in step["batches"]:
        for index, record in enumerate(batch["records"]):
            if record["type"] == "REGISTER_BROKER_RECORD" and record["data"]["brokerEpoch"] == name:
                return batch["offset"] + index
    return 0


def arranged(records):
    """A snapshot's records: the kinds in the order written, brokers by id, topics by name with their partitions."""
    topics = {}
    for record in records:
        if record["type"] in ("TOPIC_RECORD", "PARTITION_RECORD"):
            topics.setdefault(record["data"]["topicId"], []).append(record)
    result, done = [], False
    for record in records:
        if record["type"] in ("TOPIC_RECORD", "PARTITION_RECORD"):
            if not done:
                result += [item for _, items in sorted(topics.items()) for item in canonical(items)]
            done = True
        elif record["type"] != "REGISTER_CONTROLLER_RECORD":
            result.append(record)
    result = canonical(result)
    brokers = sorted((record for record in result if record["type"] == "REGISTER_BROKER_RECORD"),
                     key=lambda record: record["data"]["brokerId"])
    return [brokers.pop(0) if record["type"] == "REGISTER_BROKER_RECORD" else record for record in result]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("golden")
    parser.add_argument("other")
    options = parser.parse_args()
    traces = []
    for path in (options.golden, options.other):
        try:
            traces.append(load(path))
        except (OSError, ValueError, AttributeError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 2
    if traces[0]["scenario"] != traces[1]["scenario"]:
        print(f"traces of two scenarios: {traces[0]['scenario']} / {traces[1]['scenario']}", file=sys.stderr)
        return 2
    comparison = Comparison(*traces)
    try:
        comparison.run()
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        print(f"malformed trace: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    for difference in comparison.differences:
        print(difference)
    if comparison.differences:
        print(f"{traces[0]['scenario']}: {len(comparison.differences)} differences "
              f"(golden {traces[0]['controller']} / other {traces[1]['controller']})")
    return 1 if comparison.differences else 0


if __name__ == "__main__":
    sys.exit(main())
