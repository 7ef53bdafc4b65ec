"""``make demo-kraft``: real brokers led by kframe, one of them killed, and a page of what happened."""
