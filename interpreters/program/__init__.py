"""Programs: the equations of a traced function as plain data.

Staging makes a Program. It comes in here to be checked, printed, compared, costed and drawn; text, numbers and pictures
come out. Nothing here runs passes or generates code.
"""
