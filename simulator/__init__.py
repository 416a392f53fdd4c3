"""A fleet that does not exist: it speaks the sources' own formats and writes the truth beside them.

It imports nothing of the rest, or its truth would prove nothing. How recorded input becomes tables
belongs to `collectors` and `sql`; here is only what a platform does, and what of it can be known.
"""

from simulator.fleet import build
