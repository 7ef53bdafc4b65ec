"""ACLs, SCRAM credentials, delegation tokens and client quotas. No other rule reads them.

Kafka: ``AclControlManager``, ``ScramControlManager``, ``DelegationTokenControlManager`` and
``ClientQuotaControlManager``.
"""
