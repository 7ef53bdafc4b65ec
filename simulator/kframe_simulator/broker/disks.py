"""The log directories of a broker and their logs (Kafka 3.9 ``LogManager``)."""

from __future__ import annotations

from kframe.errors import ErrorCode, KframeError
from kframe.model.events import TopicPartition
from kframe_simulator.broker.log import FutureLog, Log
from kframe_simulator.broker.messages import NO_ID


class StorageError(KframeError):
    """A log is, or may be, in a directory that has died (KafkaStorageException)."""


class Disks:
    """Outlasts its broker's life."""

    __slots__ = ("alive", "logs", "lost", "preferred")

    def __init__(self, log_dirs: tuple[str, ...]) -> None:
        self.alive = dict.fromkeys(log_dirs, True)
        self.logs: dict[TopicPartition, Log] = {}
        """Those that can be read."""
        self.lost: dict[TopicPartition, Log] = {}
        """Those in dead directories."""
        self.preferred: dict[TopicPartition, str] = {}
        """Where replicas that are not here yet are to be put."""

    @property
    def degraded(self) -> bool:
        """Whether some directory is dead."""
        return not all(self.alive.values())

    def get_or_create(self, key: TopicPartition, is_new: bool, topic_id: bytes) -> Log:
        """The log of a replica. Raises StorageError if there is none that can be read, ``is_new`` does not say that
        there never was one, and a directory is dead: it may be in there."""
        log = self.logs.get(key)
        if log is None:
            if self.degraded and not is_new:
                raise StorageError(f"{key[0]}-{key[1]} may be in a dead log directory")
            log = self.logs[key] = Log(topic_id, self._place(key))
        elif log.topic_id == NO_ID:
            log.topic_id = topic_id
        return log

    def _place(self, key: TopicPartition) -> str:
        """The directory that is wanted, else the one with the fewest logs."""
        held = {name: 0 for name, alive in self.alive.items() if alive}
        if not held:
            raise StorageError("all log directories are dead")
        wanted = self.preferred.pop(key, None)
        if wanted is not None:
            if wanted not in held:
                raise StorageError(f"log directory {wanted} is dead")
            return wanted
        for log in self.logs.values():
            held[log.log_dir] += 1
        return min(held, key=held.__getitem__)

    def delete(self, key: TopicPartition) -> None:
        """Delete a log, if it is there."""
        self.logs.pop(key, None)

    def lose(self, key: TopicPartition) -> None:
        """A log can be read no longer."""
        if key in self.logs:
            self.lost[key] = self.logs.pop(key)

    def fail(self, log_dir: str) -> list[TopicPartition]:
        """A directory dies; the partitions whose logs were in it."""
        self.alive[log_dir] = False
        gone = [key for key, log in self.logs.items() if log.log_dir == log_dir]
        for key in gone:
            self.lose(key)
        for log in self.logs.values():
            if log.future is not None and log.future.log_dir == log_dir:
                log.future = None
        return gone

    def replace(self, log_dir: str) -> None:
        """An empty disk instead of what was there."""
        self.fail(log_dir)
        self.lost = {key: log for key, log in self.lost.items() if log.log_dir != log_dir}
        self.alive[log_dir] = True

    def move(self, log: Log, log_dir: str) -> ErrorCode:
        """Begin to copy a log to another directory (AlterReplicaLogDirs); while some directory is dead, nothing is."""
        if log.future is not None and log.future.log_dir != log_dir:
            log.future = None
        if log.log_dir == log_dir or log.future is not None:
            return ErrorCode.NONE
        if self.degraded:
            return ErrorCode.KAFKA_STORAGE_ERROR
        log.future = FutureLog(log_dir, log.start)
        return ErrorCode.NONE

    def copy(self, count: int) -> bool:
        """Go on with every copy by at most ``count`` records; what has caught up takes the log's place. Returns whether
        copies are still under way."""
        under_way = False
        for log in self.logs.values():
            if log.future is None:
                continue
            log.future.end = min(log.future.end + count, log.end)
            if log.future.end == log.end:
                log.log_dir, log.future = log.future.log_dir, None
            else:
                under_way = True
        return under_way

    def checkpoint(self) -> None:
        """Write the high watermarks down."""
        for log in self.logs.values():
            log.checkpoint = log.high_watermark

    def reload(self) -> None:
        """What a broker finds when it starts: high watermarks are those that were written down."""
        for log in self.logs.values():
            log.set_high_watermark(log.checkpoint)
