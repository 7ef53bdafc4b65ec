"""Every bench of ``kframe bench`` with a known answer.

The ordinary tests run each bench once at 1,000 partitions and check the answer. ``make bench`` times all at 100,000
and 1,000,000 partitions, ``--largest 10000000`` some at 10,000,000 too.

``answers.json`` holds the known answers: digests of the decisions, the final columns and all encoded bytes. A test
compares those of the reference kernels. After an intended change ``python -m benchmarks --only suite --partitions 1000
100000 1000000 --largest 10000000 --new-answers`` writes them anew. At other sizes a result says ``"answer_known":
false``.
"""
