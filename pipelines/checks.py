"""The blocking checks: every law and every contract, on what a run has staged.

What a law says belongs in `laws`, what a row must keep in the contracts of `models`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from models import raw
from models.catalog import CATALOG
from pipelines.assets import Ledger, key
from pipelines.graph import order, tables_read
from pipelines.laws import LAWS, Law, breaches

TABLES = (*(table.name for table in raw.TABLES), *order())
CONTRACT = "contract"


def anchor(law: Law) -> str:
    """The table after which the law can be looked at: the last of those that it reads."""
    read = {law.table, *tables_read(law.breaches)}
    return max((name for name in TABLES if name in read), key=TABLES.index)


def checked(name: str, laws: Sequence[Law]) -> dg.AssetChecksDefinition:
    """The checks of one table: its contract, and the laws that it completes."""
    specs = [
        dg.AssetCheckSpec(
            CONTRACT,
            asset=key(name),
            description=f"Every row of {name} keeps its contract.",
            blocking=True,
        ),
        *(
            dg.AssetCheckSpec(
                law.name,
                asset=key(name),
                description=law.doc,
                blocking=True,
                additional_deps=[
                    key(read) for read in sorted(tables_read(law.breaches)) if read != name
                ],
            )
            for law in laws
        ),
    ]

    @dg.multi_asset_check(name=f"{name.replace('.', '_')}_checks", specs=specs)
    def check(
        context: dg.AssetCheckExecutionContext, ledger: Ledger
    ) -> Iterator[dg.AssetCheckResult]:
        with ledger.step(context) as step:
            broken = [f"{b.rule} ({b.count:,} rows)" for b in step.run.audit(CATALOG[name])]
            counts = {law: breaches(step.run, law) for law in laws}
            failed = [f"{name}.{rule}" for rule in broken]
            failed += [f"{law.name} ({n:,} breaches)" for law, n in counts.items() if n]
            if failed:
                step.run.fail("; ".join(failed))
        yield _result(name, CONTRACT, not broken, {"broken": "; ".join(broken) or "none"})
        for law, count in counts.items():
            yield _result(name, law.name, not count, {"breach_count": count})

    return check


def _result(name: str, rule: str, passed: bool, metadata: dict[str, Any]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=key(name), check_name=rule, passed=passed, metadata=metadata
    )


CHECKS = [checked(name, [law for law in LAWS if anchor(law) == name]) for name in TABLES]
