"""Scenarios of KRaft clusters (``controller: kraft``): a quorum of one voter and its brokers in virtual time."""
