"""Execute reassignment plans on live clusters, crash-safe through a journal.

``steps.Planner`` decides: it takes the journal and an observation of the cluster, and gives the next step, without I/O.
``executor.Executor`` performs steps through an ``Administration`` and records each in a ``journal.Journal``.
"""
