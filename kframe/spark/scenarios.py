"""What befalls the clusters of a fleet: scenarios as rows, ways to make them, and playing one on one cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kframe.errors import InputError
from kframe.model.events import ElectionType
from kframe.spark.schema import SCENARIOS
from kframe.whatif import Outcome, WhatIf
from kframe.whatif.outcome import Verb

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Verbs that come to the same on shards as on the whole cluster. The others need what no shard has: all partitions of a
#: topic, or the one counter that broker epochs are taken from.
VERBS: Final = (Verb.FAIL, Verb.SHUTDOWN, Verb.ELECT)


def play_scenario(whatif: WhatIf, scenario: Mapping[str, Any]) -> Outcome:
    """Play a row of SCENARIOS. Raises InputError for a verb that fleets do not know, and for a broker or rack that the
    cluster does not have."""
    name, verb = scenario["scenario"], scenario["verb"]
    brokers, racks = tuple(scenario["brokers"] or ()), tuple(scenario["racks"] or ())
    together = scenario["together"] is not False
    match verb:
        case Verb.FAIL:
            return whatif.fail(brokers, racks, together=together)
        case Verb.SHUTDOWN:
            return whatif.shutdown(brokers, racks, together=together)
        case Verb.ELECT:
            return whatif.elect(_election(name, scenario["election"]))
    raise InputError(f"scenario {name}", f"verb {verb!r}", f"one of {', '.join(VERBS)}")


def _election(name: str, election: str | None) -> ElectionType:
    for kind in ElectionType:
        if kind.name.lower() == election:
            return kind
    known = " or ".join(kind.name.lower() for kind in ElectionType)
    raise InputError(f"scenario {name}", f"election {election!r}", known)


def one_scenario(
    session: SparkSession, name: str, verb: str = "fail", *, brokers: Sequence[int] = (), racks: Sequence[str] = (),
    together: bool = True, election: str | None = None,
) -> DataFrame:  # fmt: skip
    """One row of SCENARIOS, for every cluster."""
    row = (None, name, verb, list(brokers), list(racks), together, election)
    return session.createDataFrame([row], SCENARIOS.ddl)


def each_broker(brokers: DataFrame, verb: str = "fail") -> DataFrame:
    """For each registered broker of BROKERS the scenario ``broker-7`` of its cluster."""
    from pyspark.sql import functions as f

    return brokers.where("registered").select(
        "cluster", f.concat(f.lit("broker-"), f.col("broker_id").cast("string")).alias("scenario"),
        f.lit(verb).alias("verb"), f.array("broker_id").alias("brokers"),
        f.array().cast("array<string>").alias("racks"), f.lit(True).alias("together"),
        f.lit(None).cast("string").alias("election"),
    )  # fmt: skip


def each_rack(brokers: DataFrame, verb: str = "fail") -> DataFrame:
    """For each rack that has registered brokers the scenario ``rack-NAME`` of its cluster."""
    from pyspark.sql import functions as f

    racks = brokers.where("registered and rack is not null").select("cluster", "rack").distinct()
    return racks.select(
        "cluster", f.concat(f.lit("rack-"), f.col("rack")).alias("scenario"), f.lit(verb).alias("verb"),
        f.array().cast("array<int>").alias("brokers"), f.array("rack").alias("racks"),
        f.lit(True).alias("together"), f.lit(None).cast("string").alias("election"),
    )  # fmt: skip
