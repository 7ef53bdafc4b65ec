"""Thousands of reads or writes in a few requests: nodes, states of partitions as columns, and batches of writes with
an outcome for each. Lost responses are verified by reading.
"""
