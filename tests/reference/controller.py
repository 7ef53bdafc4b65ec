"""The reference model's controller: what it does when something happens (``spec/controller.md``).

Where Kafka 3.9's controller throws in the middle of an event, the model gives up that one partition and goes on, as
kframe says it does (``reliability.md`` X10, X11).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from tests.reference.brokers import Brokers, Sent
from tests.reference.context import INELIGIBLE, NEW, OFFLINE, ONLINE, Batch, Context
from tests.reference.deletion import Deletion
from tests.reference.facts import Entry, Key, Replica, State, Storage
from tests.reference.machines import Machines, offline_strategy, preferred_strategy, shutdown_strategy
from tests.reference.reassignment import Reassignment

FIRST_CHECK_SECONDS = 5.0


class Controller:
    """Events wait in ``events`` and are handled one by one by ``run``."""

    def __init__(self, storage: Storage, config: Mapping[str, str], remembers_deleted: bool) -> None:
        self.storage = storage
        self.config = config
        self.events: deque[Callable[[], object]] = deque()
        self.active = False
        self.brokers = Brokers(self._answered)
        self.metadata: dict[Key, Entry] = {}
        """What a broker that is always there has learned; it answers clients."""
        self.rebalance_at = float("inf")
        self.remembers_deleted = remembers_deleted
        """Kafka forgets only at failover what a deleted topic leaves behind for the next one of its name: running
        reassignments, also in storage, dead log directories, and that its deletion had halted."""
        self.order: Callable[[int], int] = int
        """Brokers receive, and answer, the requests of a batch in any order; here by this."""
        self._begin(Context())

    def _begin(self, context: Context) -> None:
        self.context = context
        by_default = self.config.get("unclean.leader.election.enable", "false") == "true"
        self.machines = Machines(self.storage, context, by_default, self.send)
        self.deletion = Deletion(self)
        self.reassignment = Reassignment(self)

    @property
    def deletes_topics(self) -> bool:
        return self.config.get("delete.topic.enable", "true") == "true"

    def run(self, after_each: Callable[[], None] = lambda: None) -> None:
        """Handle all that waits, and all that follows from it."""
        while self.events:
            self.events.popleft()()
            after_each()

    def put(self, event: Callable[..., object], *arguments: object) -> None:
        self.events.append(partial(event, *arguments))

    def send(self, batch: Batch) -> None:
        for key, entry in (batch.announced() or {}).items():
            if entry["leader"] == -2:
                self.metadata.pop(key, None)
            else:
                self.metadata[key] = entry
        for sent in batch.requests(self.order):
            self.brokers.send(sent)

    def announce(self, brokers: Iterable[int], keys: Iterable[Key] = ()) -> None:
        batch = Batch(self.context)
        batch.tell(brokers, keys)
        self.send(batch)

    # -- taking over

    def take_over(self) -> None:
        """Resign, if need be, and become controller with the next epoch."""
        context, storage = Context(), self.storage
        self.active = True
        storage.controller_epoch += 1
        context.epoch = storage.controller_epoch
        context.live = dict(storage.brokers)
        context.states = dict(storage.states)
        self.brokers.channels.clear()
        self.brokers.connect(sorted(context.live))
        self._begin(context)
        for name, topic in storage.topics.items():
            self._learn(name, topic.assignments)
        context.reassigning = {key for key, one in context.assignments.items() if one.moving}
        self.deletion.take_over()
        self.announce(context.live)
        everywhere = context.replicas_of(sorted(context.assignments))
        online = [(key, broker) for key, broker in everywhere if context.online(broker, key)]
        offline = [one for one in everywhere if one not in set(online)]
        context.replica.update(dict.fromkeys(online, ONLINE) | dict.fromkeys(offline, INELIGIBLE))
        self.machines.move_replicas(online, ONLINE)
        self.machines.move_replicas(offline, OFFLINE)
        for key in context.assignments:
            state = context.states.get(key)
            led = state is not None and context.online(state.leader, key)
            context.partition[key] = NEW if state is None else ONLINE if led else OFFLINE
        self.machines.trigger_online()
        self.reassignment.take_over()
        self.deletion.resume_all()
        self.preferred_stored()
        rebalances = self.config.get("auto.leader.rebalance.enable", "false") == "true"
        self.rebalance_at = self.brokers.now + FIRST_CHECK_SECONDS if rebalances else float("inf")

    def _learn(self, name: str, assignments: Mapping[int, object]) -> list[Key]:
        """Take up partitions from storage; return those that are new."""
        topic = self.storage.topics[name]
        self.context.topics[name] = topic.number
        new = [(name, number) for number in assignments if (name, number) not in self.context.assignments]
        self.context.assignments.update({key: topic.assignments[key[1]] for key in new})
        return new

    # -- brokers

    def brokers_changed(self) -> None:
        context, now = self.context, self.storage.brokers
        if not self.active:
            return
        new = sorted(now.keys() - context.live.keys())
        dead = sorted(context.live.keys() - now.keys())
        bounced = sorted(one for one in now.keys() & context.live.keys() if now[one] > context.live[one])
        self.brokers.connect(new + bounced)
        self.brokers.disconnect(dead)
        if new:
            self._started(new)
        if bounced:
            self._failed(bounced)
            self._started(bounced)
        if dead:
            self._failed(dead)

    def _started(self, brokers: list[int]) -> None:
        context = self.context
        others = context.live.keys() - set(brokers)
        context.live.update({one: self.storage.brokers[one] for one in brokers})
        for one in brokers:
            context.offline_dirs.pop(one, None)
        self.announce(others)
        self.announce(brokers, [key for key in context.states if key[0] not in context.queued])
        hosted = context.replicas_on(brokers)
        self.machines.move_replicas(hosted, ONLINE)
        self.machines.trigger_online()
        self.reassignment.resume(lambda key: not set(context.assignment(key).target).isdisjoint(brokers))
        self.deletion.resume({key[0] for key, _ in hosted})

    def _failed(self, brokers: list[int]) -> None:
        for one in brokers:
            self.context.live.pop(one)
            self.context.offline_dirs.pop(one, None)
            self.context.shutting_down.discard(one)
        self._gone_offline(self.context.replicas_on(brokers))

    def _gone_offline(self, replicas: list[Replica]) -> None:
        context = self.context
        kept = [one for one in replicas if one[0][0] not in context.queued]
        leaderless = [
            key
            for key, state in context.states.items()
            if not context.online(state.leader, key) and key[0] not in context.queued
        ]
        self.machines.move(leaderless, OFFLINE)
        elected = self.machines.trigger_online()
        self.machines.move_replicas(kept, OFFLINE)
        self.deletion.fail([one for one in replicas if one[0][0] in context.queued])
        if not kept and not any(elected.values()):
            self.announce(context.live)

    def shut_down(self, broker: int, broker_epoch: int) -> tuple[str, list[Key]]:
        """Controlled shutdown; the answer names what the broker still leads."""
        context = self.context
        if broker_epoch != -1 and broker not in context.live:
            return "UNKNOWN_SERVER_ERROR", []
        if broker_epoch != -1 and broker_epoch < context.live[broker]:
            return "STALE_BROKER_EPOCH", []
        if broker not in context.live:
            return "BROKER_NOT_AVAILABLE", []
        context.shutting_down.add(broker)
        hosted = [
            key
            for key, _ in context.replicas_on([broker])
            if len(context.assignment(key).replicas) > 1 and key in context.states and key[0] not in context.queued
        ]
        led = [key for key in hosted if context.states[key].leader == broker]
        followed = [key for key in hosted if key not in led]
        self.machines.move(led, ONLINE, shutdown_strategy)
        batch = Batch(context)
        for key in followed:
            batch.stop(broker, key, delete=False)
        self.send(batch)
        self.machines.move_replicas([(key, broker) for key in followed], OFFLINE)
        return "NONE", [key for key in context.states if self._still_led(key, broker)]

    def _still_led(self, key: Key, broker: int) -> bool:
        context = self.context
        alone = len(context.assignment(key).replicas) <= 1
        return context.states[key].leader == broker and not alone and key[0] not in context.queued

    # -- answers of brokers

    def _answered(self, sent: Sent, error: str, errors: dict[Key, str]) -> None:
        if sent.request["api"] == "LeaderAndIsr":
            self.put(self._leader_and_isr_answered, sent, error, errors)
        if sent.request["api"] == "StopReplica":
            deleted = {
                key: said
                for key, said in errors.items()
                if sent.partitions[key]["delete_partition"] and key[0] in self.context.started
            }
            if deleted:
                self.put(self.deletion.answered, sent.request["broker"], error, deleted)

    def _leader_and_isr_answered(self, sent: Sent, error: str, errors: dict[Key, str]) -> None:
        if error != "NONE":
            return
        context, broker = self.context, sent.request["broker"]
        known = {key: said for key, said in errors.items() if context.topics.get(key[0]) == sent.topics[key[0]]}
        offline = {key for key, said in known.items() if said == "KAFKA_STORAGE_ERROR"}
        before = context.offline_dirs.get(broker, set())
        after = (before - {key for key, said in known.items() if said == "NONE"}) | offline
        context.offline_dirs[broker] = after
        if after - before:
            self._gone_offline([(key, broker) for key in sorted(after - before)])

    def log_dirs_failed(self, broker: int) -> None:
        self.machines.move_replicas(self.context.replicas_on([broker]), ONLINE)

    # -- topics

    def topics_changed(self) -> None:
        new = [key for name, topic in self.storage.topics.items() if name not in self.context.topics
               for key in self._learn(name, topic.assignments)]  # fmt: skip
        self._bring_up(new)

    def topic_modified(self, name: str) -> None:
        """Partitions were added; not while the topic waits for its deletion."""
        if name not in self.context.queued:
            self._bring_up(self._learn(name, self.storage.topics[name].assignments))

    def _bring_up(self, keys: list[Key]) -> None:
        self.machines.move(keys, NEW)
        self.machines.move_replicas(self.context.replicas_of(keys), NEW)
        self.machines.move(keys, ONLINE, offline_strategy(False))
        self.machines.move_replicas(self.context.replicas_of(keys), ONLINE)

    def unclean_enabled(self, topic: str) -> None:
        self.machines.trigger_online(topic)

    # -- elections

    def elect(self, keys: Iterable[Key], kind: str) -> dict[Key, str]:
        """ElectLeaders: a code for each partition. One that never had a leader cannot get one here."""
        context, codes = self.context, {}
        nobody = "PREFERRED_LEADER_NOT_AVAILABLE" if kind == "preferred" else "ELIGIBLE_LEADERS_NOT_AVAILABLE"
        for key in keys:
            if key not in context.assignments:
                codes[key] = "UNKNOWN_TOPIC_OR_PARTITION"
            elif key[0] in context.queued:
                codes[key] = "INVALID_TOPIC_EXCEPTION"
            elif key not in context.states:
                codes[key] = nobody
            elif self._well_led(key, kind):
                codes[key] = "ELECTION_NOT_NEEDED"
        strategy = preferred_strategy if kind == "preferred" else offline_strategy(True)
        elected = self.machines.move([key for key in keys if key not in codes], ONLINE, strategy)
        return codes | {key: "NONE" if done else nobody for key, done in elected.items()}

    def _well_led(self, key: Key, kind: str) -> bool:
        leader = self.context.states[key].leader
        return (
            leader == self.context.assignment(key).replicas[0] if kind == "preferred" else self.context.serving(leader)
        )

    def preferred_stored(self) -> None:
        if self.storage.preferred is not None:
            self.elect(self.storage.preferred, "preferred")
            self.storage.preferred = None

    def rebalance(self) -> None:
        """Automatic preferred elections, broker by broker."""
        context = self.context
        self.rebalance_at = self.brokers.now + float(self.config.get("leader.imbalance.check.interval.seconds", "300"))
        limit = float(self.config.get("leader.imbalance.per.broker.percentage", "10")) / 100
        kept = [key for key in sorted(context.assignments) if key[0] not in context.queued]
        for broker in sorted({context.assignment(key).replicas[0] for key in kept}):
            mine = [key for key in kept if context.assignment(key).replicas[0] == broker]
            away = [key for key in mine if key in context.states and context.states[key].leader != broker]
            if len(away) / len(mine) > limit:
                able = [key for key in away if context.online(broker, key) and broker in context.states[key].isr]
                self.machines.move(able, ONLINE, preferred_strategy)

    # -- in-sync replicas

    def alter_partitions(self, sender: int, broker_epoch: int, wanted: Mapping[Key, State]) -> str | dict[Key, str]:
        """AlterPartition, version 3: a top-level error, or a code for each partition."""
        context = self.context
        if context.live.get(sender) != broker_epoch:
            return "STALE_BROKER_EPOCH"
        codes = {key: self._judge(key, state) for key, state in wanted.items()}
        for key, code in codes.items():
            if code == "":
                context.states[key] = self.storage.store(key, wanted[key], context.epoch)
        self.announce(context.live, [key for key in wanted if key[0] in context.topics])
        answers = {key: code or "NONE" for key, code in codes.items()}
        for key, code in answers.items():
            if code == "NONE":
                self.reassignment.complete_if_in_sync(key)
        return answers

    def _judge(self, key: Key, wanted: State) -> str:
        """A code, empty if the state is to be written."""
        has = self.context.states.get(key)
        if key[0] not in self.context.topics:
            return "UNKNOWN_TOPIC_ID"
        if has is None:
            return "UNKNOWN_TOPIC_OR_PARTITION"
        if wanted.partition_epoch > has.partition_epoch or wanted.leader_epoch > has.leader_epoch:
            return "NOT_CONTROLLER"
        if wanted.leader_epoch < has.leader_epoch:
            return "FENCED_LEADER_EPOCH"
        if (wanted.leader, wanted.isr, wanted.recovery) == (has.leader, has.isr, has.recovery):
            return "NONE"
        if wanted.partition_epoch < has.partition_epoch:
            return "INVALID_UPDATE_VERSION"
        if wanted.recovery == 1 and (len(wanted.isr) > 1 or has.recovery == 0):
            return "INVALID_REQUEST"
        return "" if all(self.context.serving(one) for one in wanted.isr) else "INELIGIBLE_REPLICA"

    def isrs_changed(self, keys: list[Key]) -> None:
        """Leaders wrote ISRs themselves and left word."""
        self.context.states.update({key: self.storage.states[key] for key in keys if key in self.storage.states})
        self.announce(self.context.live, keys)
        for key in keys:
            self.reassignment.complete_if_in_sync(key)
