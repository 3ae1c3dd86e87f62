"""Programs: the equations of a traced function as plain data.

Staging makes a Program. Here it is checked, printed, compared, costed, drawn, saved and read; nothing here runs the
passes or generates code.
"""
