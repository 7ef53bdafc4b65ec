"""What brokers and the controller share in ZooKeeper: ACLs, credentials, delegation tokens, quotas, the cluster id.

The format of such a record goes here, and its compare-and-set. The handlers that change records are in ``apis``.
"""
