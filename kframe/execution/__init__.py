"""Execute reassignment plans on live clusters, crash-safe through a journal.

``steps.Planner`` decides: it takes the journal and what a cluster shows, and gives the next step, without I/O.
``executor.Executor`` performs steps through an ``Administration`` and records each in a ``journal.Journal``.
"""
