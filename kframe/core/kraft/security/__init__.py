"""ACLs, SCRAM credentials, delegation tokens and client quotas (Kafka ``AclControlManager``, ``ScramControlManager``,
``DelegationTokenControlManager`` and ``ClientQuotaControlManager``)."""
