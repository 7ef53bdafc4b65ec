"""Access to a console: logins, sessions, CSRF tokens, and the log of writes."""
