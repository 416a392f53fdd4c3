"""A report as a mail: headers, text and HTML side by side, in bytes that any server takes.

Sending it belongs to `report_send`. Apart from Date and Message-ID the same report, sender and
recipients give the same bytes.
"""

from collections.abc import Sequence
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid, parseaddr
from hashlib import sha256

from pipelines.report import Report
from pipelines.report_html import html
from pipelines.report_text import text


def mail(report: Report, sender: str, recipients: Sequence[str], now: datetime) -> EmailMessage:
    """The mail of a report."""
    name, address = parseaddr(sender)
    plain, rich = text(report), html(report)
    message = EmailMessage(policy=SMTP)
    message["From"] = Address(name, addr_spec=address)
    message["To"] = tuple(Address(addr_spec=recipient) for recipient in recipients)
    message["Subject"] = f"{report.subject} (snapshot {report.snapshot})"
    message["Date"] = format_datetime(now)
    message["Message-ID"] = make_msgid(domain=address.rpartition("@")[2])
    message["Auto-Submitted"] = "auto-generated"  # so that no holiday notice answers it
    message["X-Gpuledger-Snapshot"] = str(report.snapshot)
    message.set_content(plain, cte="quoted-printable")
    message.add_alternative(rich, subtype="html", cte="quoted-printable")
    # Left alone, the boundary is drawn by lot. Quoted-printable never holds "=_".
    message.set_boundary(f"=_{sha256((plain + rich).encode()).hexdigest()[:40]}")
    return message
