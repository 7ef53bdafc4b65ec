"""Plans beside a cluster: what cannot be executed, what is risky, and what moves."""
