"""Every bench of ``kframe bench`` with a known answer, timed by pytest-benchmark.

The ordinary tests run each bench once at 1,000 partitions and check the answer. ``make bench`` times all at 100,000
and 1,000,000 partitions, ``--largest 10000000`` some at 10,000,000 too. By hand, with the options of pytest and
pytest-benchmark::

    pytest benchmarks --benchmark-only --benchmark-json=times.json --benchmark-min-rounds=2 -k "failover and 1000-10"
    pytest benchmarks --bench-partitions 100000 --bench-brokers 10,100 -k failover

A run needs a fresh cluster, so each round is one run and is not calibrated: ``--benchmark-max-time`` has no effect,
``--bench-seconds`` limits the rounds.

``answers.json`` holds the known answers: digests of the decisions, the final columns and all encoded bytes. A test
compares those of the reference kernels. After an intended change ``--new-answers`` writes them anew, at every size in
the file. At other sizes a result says ``"answer_known": false``.
"""
