"""Code blocks that ``tests/docs/test_blocks.py`` does not run, with the reason, and files that pages expect.

A command is named by its start. Its ``kframe`` lines are parsed all the same, its make targets and modules must exist.
"""

from __future__ import annotations

from typing import Final

CAMPAIGN: Final = "takes minutes or hours; the suite runs a short form"
CLUSTER: Final = "needs a Kafka cluster; plugins' tests run the command with brokers"
CONTAINER: Final = "needs a container engine or root"
SETUP: Final = "installs; every test run has done it"
SPARK: Final = "needs a fleet and Spark; tests/spark runs the commands and functions"
SUITE: Final = "runs the test suite or a part of it"
TOOL: Final = "a tool of Kafka or Spark, which the suite does not install"

#: Start of a command to the reason, on any page.
ANYWHERE: Final[dict[str, str]] = {
    "git clone ": SETUP,
    "jq ": "a tool that the suite does not install",
    "make demo": "tests/cli/test_demo_command.py runs it",
    "make setup": SETUP,
    "make test": SUITE,
    "pip install --find-links ": "tests/packaging/test_distributions.py runs it",
    "pip install --no-index ": "tests/packaging/test_distributions.py runs it",
    "kafka-topics.sh ": TOOL,
    "spark-submit ": TOOL,
}

#: Steps of a plan that need a cluster.
PLANS: Final = {"kframe snapshot capture": CLUSTER, "kframe plan execute": CLUSTER}

#: Page to the start of a command or of a Python block, and the reason. An empty start names all of the page.
NOT_RUN: Final[dict[str, dict[str, str]]] = {
    "deploy/README.md": {"": CONTAINER},
    "docs/evidence/simulation.md": {"kframe sim run": CAMPAIGN, "kframe sim total": CAMPAIGN},
    "docs/explanation/simulation.md": {
        "kframe sim run": CAMPAIGN,
        "kframe sim shrink": "needs a run that breaks an invariant; simulator/tests shrink some",
        "kframe sim total": CAMPAIGN,
        "kframe plugins check": "simulator/tests and the plugins' tests run the checks",
        "from kframe.model.ids": "names a selector of the reader",
    },
    "docs/howto/campaigns.md": {"": CAMPAIGN},
    "docs/howto/capture.md": {"": CLUSTER},
    "docs/howto/execute-a-plan.md": {"": CLUSTER},
    "docs/howto/console.md": {
        "kframe console": "serves until it is stopped; plugins/console/tests run it",
        "curl ": "asks a console that runs; plugins/console/tests ask one",
    },
    "docs/howto/decommission.md": PLANS,
    "docs/howto/demote.md": {**PLANS, "kframe elect": CLUSTER, "kframe plan rollback": CLUSTER},
    "docs/howto/disks.md": {
        "kframe plan disks kafka": CLUSTER,
        "kframe snapshot capture": CLUSTER,
        "kafka-log-dirs.sh ": TOOL,
        "kframe plan execute": CLUSTER,
        "kframe plan rollback": CLUSTER,
    },
    "docs/howto/expand.md": PLANS,
    "docs/howto/fleet-whatif.md": {"": SPARK},
    "docs/howto/fleet.md": {"": SPARK},
    "docs/howto/kraft-log.md": {"": CLUSTER},
    "docs/howto/kraft-recovery.md": {"": CLUSTER},
    "docs/howto/lead-kraft.md": {"": CLUSTER},
    "docs/howto/kraft.md": {"kframe whatif fail-directories": "names a log directory of the reader's cluster"},
    "docs/howto/live.md": {"": CLUSTER},
    "docs/howto/one-rack.md": PLANS,
    "docs/howto/plugins.md": {"pip install": SETUP},
    "docs/howto/rebalance.md": {**PLANS, "kframe elect": CLUSTER},
    "docs/howto/replication-factor.md": PLANS,
    "docs/howto/reassign-partitions.md": {
        "kframe plan check captured plan.json --weights": "the sizes of replicas are those of the reader's cluster",
        "kframe plan execute": CLUSTER,
        "kframe plan abort": CLUSTER,
        "kframe plan rollback": CLUSTER,
        "kframe reassign": CLUSTER,
        "kframe elect": CLUSTER,
    },
    "docs/howto/rolling-restarts.md": {"kframe plan restarts kafka": CLUSTER, "kframe plan restarts captured": CLUSTER},
    "docs/howto/shadow.md": {"": CLUSTER},
    "docs/howto/zookeeper.md": {"": CLUSTER},
    "docs/tutorial/from-describe-to-plugin.md": {"pip install": SETUP},
    "docs/tutorial/kafka-4-led-by-kframe.md": {"": CLUSTER},
    "docs/tutorial/live-controller.md": {"": CLUSTER},
}

_SIX_BROKERS: Final = "examples/clusters/kafka-3.9.1-six-brokers"
#: Page to the files that its reader has, and the files of the repository with their content.
FILES: Final[dict[str, dict[str, str]]] = {
    **{
        f"docs/howto/{name}.md": {"captured": f"{_SIX_BROKERS}/healthy.zookeeper.jsonl.gz"}
        for name in ("demote", "decommission", "expand", "one-rack", "rebalance", "replication-factor")
    },
    "docs/howto/disks.md": {
        "topics.txt": "tests/plans/disks/data/topics.txt",
        "log-dirs.txt": "tests/plans/disks/data/log-dirs.txt",
    },
    "docs/howto/kraft.md": {"topics.txt": "examples/clusters/kafka-4-kraft-three-brokers/topics-describe.txt"},
    "docs/howto/reassign-partitions.md": {
        "captured": f"{_SIX_BROKERS}/healthy.zookeeper.jsonl.gz",
        "plan.json": f"{_SIX_BROKERS}/reassignment.json",
    },
    "docs/howto/stage-a-plan.md": {"captured": f"{_SIX_BROKERS}/healthy.zookeeper.jsonl.gz"},
    "docs/howto/sweep.md": {
        "healthy.zookeeper.jsonl.gz": f"{_SIX_BROKERS}/healthy.zookeeper.jsonl.gz",
        "topics.txt": "examples/clusters/kafka-4-kraft-three-brokers/topics-describe.txt",
    },
    "docs/tutorial/first-what-if.md": {"topics.txt": f"{_SIX_BROKERS}/healthy.topics-describe.txt.gz"},
}


def reason(page: str, start: str) -> str | None:
    """Return why a command or block that begins with ``start`` does not run, None if it runs."""
    of_page = NOT_RUN.get(page, {})
    return next((text for prefix, text in {**of_page, **ANYWHERE}.items() if start.startswith(prefix)), None)
