"""The log directories of a broker and their logs (Kafka 3.9 ``LogManager``)."""

from __future__ import annotations

from kframe.errors import KframeError
from kframe.model.events import TopicPartition
from kframe_simulator.broker.log import Log
from kframe_simulator.broker.messages import NO_ID


class StorageError(KframeError):
    """A log is, or may be, in a failed log directory (KafkaStorageException)."""


class Disks:
    """The log directories of a broker. They survive restarts of its process."""

    __slots__ = ("alive", "logs", "lost")

    def __init__(self, log_dirs: tuple[str, ...]) -> None:
        self.alive = dict.fromkeys(log_dirs, True)
        self.logs: dict[TopicPartition, Log] = {}
        """Logs that can be read."""
        self.lost: dict[TopicPartition, Log] = {}
        """Logs in failed directories."""

    def get_or_create(self, key: TopicPartition, is_new: bool, topic_id: bytes) -> Log:
        """Return the log of a replica, and create it if needed. Raises StorageError if the log may be in a failed
        directory. That is so if there is one, no readable log exists, and the request does not say ``is_new``."""
        log = self.logs.get(key)
        if log is None:
            if not is_new and not all(self.alive.values()):
                raise StorageError(f"{key[0]}-{key[1]} may be in a dead log directory")
            log = self.logs[key] = Log(topic_id, self._emptiest_log_dir())
        elif log.topic_id == NO_ID:
            log.topic_id = topic_id
        return log

    def _emptiest_log_dir(self) -> str:
        """The working directory with the fewest logs."""
        log_counts = {name: 0 for name, alive in self.alive.items() if alive}
        if not log_counts:
            raise StorageError("all log directories are dead")
        for log in self.logs.values():
            log_counts[log.log_dir] += 1
        return min(log_counts, key=log_counts.__getitem__)

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
        failed = [key for key, log in self.logs.items() if log.log_dir == log_dir]
        for key in failed:
            self.lose(key)
        return failed

    def replace(self, log_dir: str) -> None:
        """Replace a directory by an empty disk."""
        self.fail(log_dir)
        self.lost = {key: log for key, log in self.lost.items() if log.log_dir != log_dir}
        self.alive[log_dir] = True

    def checkpoint(self) -> None:
        """Write the high watermark checkpoints."""
        for log in self.logs.values():
            log.checkpoint = log.high_watermark

    def reload(self) -> None:
        """Restore high watermarks from their checkpoints, as at a start."""
        for log in self.logs.values():
            log.set_high_watermark(log.checkpoint)
