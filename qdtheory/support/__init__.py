"""Numbers, records, tables of text, packages and progress: no mathematics."""
