"""From record batches to the metadata of a cluster: open transactions, bulk replay into columns, and the image at an
offset of the log.
"""
