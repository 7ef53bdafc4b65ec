"""Settings of a topic that are valid alone, and contradict each other (Kafka 4.4 ``LogConfig.validate``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kframe.model.value_checks import invalid

REMOTE_STORAGE: Final = "remote.storage.enable"
_COPY_DISABLED: Final = "remote.log.copy.disable"
#: A local retention that equals the total retention, and a retention without a limit.
_AS_WHOLE, _UNLIMITED = -2, -1


def contradiction(values: Mapping[str, str], stored: Mapping[str, str], *, tiered_storage: bool) -> str | None:
    """The reason why Kafka refuses the settings in effect, ``values``, of a topic that had ``stored``; or None.

    ``tiered_storage``: whether the controller has ``remote.log.storage.system.enable``.
    """
    return next(_contradictions(values, stored, tiered_storage), None)


def _contradictions(values: Mapping[str, str], stored: Mapping[str, str], tiered_storage: bool) -> Iterator[str]:
    minimum, maximum = int(values["min.compaction.lag.ms"]), int(values["max.compaction.lag.ms"])
    if minimum > maximum:
        yield f"conflict topic config setting min.compaction.lag.ms ({minimum}) > max.compaction.lag.ms ({maximum})"
    if _is_true(values[REMOTE_STORAGE]):
        yield from _tiered(values, tiered_storage)
    elif _is_true(stored.get(REMOTE_STORAGE, "false")) and not _is_true(values["remote.log.delete.on.disable"]):
        yield (
            "It is invalid to disable remote storage without deleting remote data. If you want to keep the remote data"
            " and turn to read only, please set `remote.storage.enable=true,remote.log.copy.disable=true`. If you want"
            " to disable remote storage and delete all remote data, please set"
            " `remote.storage.enable=false,remote.log.delete.on.disable=true`."
        )


def _tiered(values: Mapping[str, str], tiered_storage: bool) -> Iterator[str]:
    if not tiered_storage:
        yield (
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    if [part.strip() for part in values["cleanup.policy"].split(",") if part.strip()] not in ([], ["delete"]):
        yield (
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list."
        )
    for unit in ("bytes", "ms"):
        yield from _local_retention(values, unit)
    for unit in ("bytes", "ms"):
        yield from _copy_lag(values, unit)
    for unit in ("bytes", "ms"):
        local, whole = int(values[f"local.retention.{unit}"]), int(values[f"retention.{unit}"])
        if _is_true(values[_COPY_DISABLED]) and local not in (_AS_WHOLE, whole):
            yield (
                f"When `{_COPY_DISABLED}` is set to true, the `local.retention.{unit}` and `retention.{unit}` must be"
                " set to the identical value because there will be no more logs copied to the remote storage."
            )


def _local_retention(values: Mapping[str, str], unit: str) -> Iterator[str]:
    """The local retention exceeds the total one."""
    name, local_name = f"retention.{unit}", f"local.retention.{unit}"
    whole, local = int(values[name]), int(values[local_name])
    if whole <= _UNLIMITED or local == _AS_WHOLE:
        return
    if local == _UNLIMITED:
        yield invalid(local_name, local, f"Value must not be -1 as {name} value is set as {whole}.")
    elif local > whole:
        yield invalid(local_name, local, f"Value must not be more than {name} property value: {whole}")


def _copy_lag(values: Mapping[str, str], unit: str) -> Iterator[str]:
    """Segments would be copied to the remote storage after they are deleted."""
    name, local_name = f"remote.copy.lag.{unit}", f"local.retention.{unit}"
    lag, local = int(values[name]), int(values[local_name])
    effective = int(values[f"retention.{unit}"]) if local == _AS_WHOLE else local
    if 0 <= effective < lag:
        yield invalid(name, lag, f"Value must not exceed {local_name} (effective value: {effective})")


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"
