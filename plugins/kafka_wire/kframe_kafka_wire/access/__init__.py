"""Who a client is and what it may do: the exchanges of SASL logins, and the authorizers."""
