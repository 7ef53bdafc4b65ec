"""The log directories of a broker and their logs (Kafka 3.9 ``LogManager``)."""

from __future__ import annotations

from kframe.errors import ErrorCode, KframeError
from kframe.model.events import TopicPartition
from kframe_simulator.broker.log import FutureLog, Log
from kframe_simulator.broker.messages import NO_ID


class StorageError(KframeError):
    """A log is, or may be, in a failed log directory (KafkaStorageException)."""


class Disks:
    """The log directories of a broker. They survive restarts of its process."""

    __slots__ = ("alive", "logs", "lost", "preferred")

    def __init__(self, log_dirs: tuple[str, ...]) -> None:
        self.alive = dict.fromkeys(log_dirs, True)
        self.logs: dict[TopicPartition, Log] = {}
        """Logs that can be read."""
        self.lost: dict[TopicPartition, Log] = {}
        """Logs in failed directories."""
        self.preferred: dict[TopicPartition, str] = {}
        """The directories for replicas that do not exist here yet."""

    @property
    def degraded(self) -> bool:
        """Whether any directory has failed."""
        return not all(self.alive.values())

    def get_or_create(self, key: TopicPartition, is_new: bool, topic_id: bytes) -> Log:
        """Return the log of a replica, and create it if needed. Raises StorageError if the log may be in a failed
        directory: there is one, no readable log exists, and the request does not say ``is_new``."""
        log = self.logs.get(key)
        if log is None:
            if self.degraded and not is_new:
                raise StorageError(f"{key[0]}-{key[1]} may be in a dead log directory")
            log = self.logs[key] = Log(topic_id, self._place(key))
        elif log.topic_id == NO_ID:
            log.topic_id = topic_id
        return log

    def _place(self, key: TopicPartition) -> str:
        """The preferred directory, else the one with the fewest logs."""
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
        """Delete a log, if it exists."""
        self.logs.pop(key, None)

    def lose(self, key: TopicPartition) -> None:
        """Make a log unreadable."""
        if key in self.logs:
            self.lost[key] = self.logs.pop(key)

    def fail(self, log_dir: str) -> list[TopicPartition]:
        """Fail a directory. Returns the partitions whose logs were in it."""
        self.alive[log_dir] = False
        gone = [key for key, log in self.logs.items() if log.log_dir == log_dir]
        for key in gone:
            self.lose(key)
        for log in self.logs.values():
            if log.future is not None and log.future.log_dir == log_dir:
                log.future = None
        return gone

    def replace(self, log_dir: str) -> None:
        """Put an empty disk in place of a directory."""
        self.fail(log_dir)
        self.lost = {key: log for key, log in self.lost.items() if log.log_dir != log_dir}
        self.alive[log_dir] = True

    def move(self, log: Log, log_dir: str) -> ErrorCode:
        """Begin to copy a log to another directory (AlterReplicaLogDirs). Nothing is copied while any directory has
        failed."""
        if log.future is not None and log.future.log_dir != log_dir:
            log.future = None
        if log.log_dir == log_dir or log.future is not None:
            return ErrorCode.NONE
        if self.degraded:
            return ErrorCode.KAFKA_STORAGE_ERROR
        log.future = FutureLog(log_dir, log.start)
        return ErrorCode.NONE

    def copy(self, count: int) -> bool:
        """Continue every copy by at most ``count`` records. A copy that has caught up replaces the log. Returns whether
        copies are still in progress."""
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
        """Write the high watermark checkpoints."""
        for log in self.logs.values():
            log.checkpoint = log.high_watermark

    def reload(self) -> None:
        """Restore high watermarks from their checkpoints, as at a start."""
        for log in self.logs.values():
            log.set_high_watermark(log.checkpoint)
