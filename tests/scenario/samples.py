"""A valid scenario, which tests modify."""

from __future__ import annotations

GOOD = """\
schema: kframe.scenario/v1
name: sample
config:
  auto.leader.rebalance.enable: false
brokers:
  - {id: 1, rack: a}
  - {id: 2, rack: b}
topics:
  - name: t
    config: {unclean.leader.election.enable: "false"}
    partitions:
      - {partition: 0, replicas: [1, 2], leader: 1, isr: [1, 2], leader_epoch: 4}
      - {partition: 1, replicas: [2, 1]}
steps:
  - elect: {}
  - broker_failure: [1]
"""
