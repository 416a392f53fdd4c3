"""One thing that `doctor` looked at: what it is, how to mend it, and which exit code it asks for.

What is looked at belongs to `doctor` and to the modules for each kind of source.
"""

from typing import NamedTuple


class Finding(NamedTuple):
    """One thing that was looked at; `mend` says what to do, where something is to be done."""

    what: str
    mend: str = ""
    code: int = 0
