"""The controller of a what-if: one engine for each mode of a cluster.

``choice.engine_of`` takes the engine of a snapshot's mode. ``zookeeper`` and ``kraft`` hold what differs by mode.
"""
