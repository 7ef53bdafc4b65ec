"""What people see of an object: facts, tables and pictures, as text, as HTML and as figures.

The pages of plans, the cells of notebooks and the files of ``--report`` have the same parts and templates.
"""
