"""One ZooKeeper session: the settings and the hardened kazoo client, the fence that tells whether the session lives,
encoded requests, and watches that survive reconnects. Nothing here knows a controller.
"""
