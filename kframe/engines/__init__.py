"""The controller of a what-if: one engine for each mode of a cluster, and the results that both give.

``choice.engine_of`` takes the engine of a snapshot's mode. ``zookeeper`` and ``kraft`` hold what differs by mode;
``results`` holds what a what-if reports.
"""
