"""Where a log comes from: a node's directory, a segment, a snapshot or a dump; and the snapshot of kframe it gives.

The package imports nothing, because kframe calls ``detection.py`` for every file that it opens.
"""
