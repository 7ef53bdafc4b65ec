"""Who is controller: elections, early claims, the liveness of the active process, and the records of instances.
``connection.py`` joins a session to the role: it fences writes by the won election.
"""
