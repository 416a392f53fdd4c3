"""Which texts a spreadsheet computes: whoever writes a CSV puts an apostrophe before them.

How a value is written belongs to the writers.
"""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What makes a spreadsheet take a text for a formula, after spaces; the full-width signs too."""
