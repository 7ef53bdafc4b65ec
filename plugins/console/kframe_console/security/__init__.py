"""Who may use a console: logins, tokens against forged writes, bounds, and the log of writes."""
