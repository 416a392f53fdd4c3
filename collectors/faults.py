"""Why a server gave no answer, whatever it serves: what all who ask one raise.

Which faults there are of a kind of server belongs to `prometheus_http` and `kube_api`.
"""


class Fault(Exception):
    """No answer: a word for the kind, and what was said."""

    def __init__(self, reason: str, text: str = "", after: float | None = None):
        super().__init__(f"{reason}: {text}" if text else reason)
        self.reason, self.text = reason, text
        self.after = after
        """Seconds that the server asked us to wait."""


def retry_after(text: str | None) -> float | None:
    """The seconds of a Retry-After header; None where it tells none."""
    try:
        return max(float(text), 0.0) if text else None
    except ValueError:
        return None  # a date: our own pauses will do
