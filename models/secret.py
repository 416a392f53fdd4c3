"""References to secrets: where one is kept, and how it is read; never the secret itself.

No secret stands in the configuration, and no fault of this part repeats what was written where a
secret might stand by mistake. What a secret is for belongs to the part that names it.
"""

import os
import re
from typing import Self

from pydantic import model_validator

from models.parts import Beside, Part

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SecretError(Exception):
    """A secret cannot be had; the text names the reference, never the secret."""


class Secret(Part):
    """Where a secret is kept. It is read at each use, for tokens are renewed."""

    env: str | None = None
    file: Beside | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError("needs env, the name of a variable, or file, one of the two")
        if self.env is not None and not _VARIABLE.fullmatch(self.env):
            raise ValueError("env is no name of an environment variable")
        return self

    def read(self) -> str:
        """The secret, without the line's end."""
        if self.env is not None:
            place, found = f"the variable {self.env}", os.environ.get(self.env, "")
        else:
            assert self.file is not None
            place = f"the file {self.file}"
            try:
                found = self.file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise SecretError(f"{place} cannot be read: {type(error).__name__}") from None
        found = found.strip("\r\n")
        if not found:
            raise SecretError(f"{place} is not set or empty")
        if not found.isprintable():
            raise SecretError(f"{place} holds more than one line or unprintable signs")
        return found
