"""The `demo` command: a simulated fleet through the whole pipeline, into a lake of its own.

How the fleet behaves belongs in `simulator`; what a run does in `process`.
"""

import os
import shlex
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pipelines.cli_common import REFUSED, answering, home_of, progress, stop

if TYPE_CHECKING:
    from lake.home import Home

CLUSTERS = 2
UV, UNDER_UV = "uv run", "UV_RUN_RECURSION_DEPTH"  # set for what `uv run` starts
NEXT = (
    "status",
    'query "from mart.team_days order by team_cost desc limit 10"',
    'query "select team_name, workload_name, begin_at, likely_cause_name '
    'from mart.gpu_episodes where is_open"',
    "explain mart.team_days team_cost team_name=research",
    "init     # after `unset GPULEDGER_HOME`: then name your own sources in gpuledger.yaml",
)
"""What a newcomer may ask of the demo's lake, and then do."""
TOTALS = """
    with totals as (
        select
            sum(gpu_seconds) as installed,
            sum(gpu_seconds) filter (where state_name in ({held})) as held,
            sum(gpu_seconds) filter (where state_name = 'unobserved') as unobserved,
            sum(gpu_seconds) filter (where state_name in ('idle', 'stalled')) as idle,
            sum(gpu_seconds) filter (where state_name = 'unallocated') as unallocated,
            sum(gpu_seconds) filter (where state_name = 'unavailable') as unavailable,
            sum(gpu_seconds) filter (where state_name = 'unrecorded') as unrecorded,
            sum(unpriced_gpu_seconds) as unpriced,
            sum(state_cost) as cost
        from mart.fleet_states
    )
    select coalesce(installed, 0), coalesce(held, 0), coalesce(unobserved, 0), coalesce(idle, 0),
        coalesce(unallocated, 0), coalesce(unavailable, 0), coalesce(unrecorded, 0),
        coalesce(unpriced, 0), coalesce(cost, 0)
    from totals
"""


def demo(*, serve: bool, seed: int, days: int, folder: Path | None, port: int) -> None:
    """Build, process, print what came out; then serve the dashboard if asked to."""
    from lake.home import Home
    from models.config import load
    from pipelines.cli_run import one, worst
    from simulator import build

    begun = time.monotonic()
    with answering():
        home = Home(folder if folder else home_of(None).path / "demo")
        fleet = home.path / "fleet"
        if home.path.exists() and any(home.path.iterdir()) and not (fleet / "truth").is_dir():
            stop(f"{home.path} holds something else than a demo: name another --home")
        for old in (fleet, home.catalog.parent, home.runs):
            shutil.rmtree(old, ignore_errors=True)
        with progress("demo") as step:
            step(f"simulating {CLUSTERS} clusters x {days} days", 0, 1)
            config = load(build(fleet, seed=seed, clusters=CLUSTERS, days=days, metrics=True))
        typer.echo(f"simulated {CLUSTERS} clusters x {days} days in {fleet}")
        codes = [one(home, config, cluster.name) for cluster in config.clusters]
        if worst(codes) == REFUSED:
            raise typer.Exit(REFUSED)
        _laws()
        _totals(home, config.lake.currency)
    typer.echo(f"\ntook {time.monotonic() - begun:.0f} s. Where to go next:")
    typer.echo(f"  export GPULEDGER_HOME={shlex.quote(str(home.path))}")
    words = f"{UV} gpuledger" if UNDER_UV in os.environ else "gpuledger"
    for line in NEXT:
        typer.echo(f"  {words} {line}")
    if serve:
        serve_dashboard(home, port)


def _laws() -> None:
    from pipelines.laws import LAWS

    typer.echo("\nlaws, checked before publishing:")
    for law in LAWS:
        typer.echo(f"  ok  {law.name:<28} {law.doc}")


def _totals(home: "Home", currency: str) -> None:
    from lake.read import Door
    from models.states import HELD_STATES

    with Door(home) as door:
        held_states = ", ".join(f"'{state}'" for state in HELD_STATES)
        [row] = door.query(TOTALS.format(held=held_states)).fetchall()
        installed, held, unobserved, idle, unallocated, unavailable, unrecorded, *money = row
        unpriced, cost = money
        available = installed - unavailable - unrecorded
        typer.echo(f"\nfleet totals at snapshot {door.snapshot.number}, in GPU-hours:")
    for name, seconds in (
        ("installed", installed),
        ("held", held),
        ("  not measured", unobserved),
        ("  idle or stalled", idle),
        ("unallocated", unallocated),
        ("unavailable", unavailable),
        ("unrecorded", unrecorded),
    ):
        typer.echo(f"  {name:<18} {seconds / 3600:>14,.1f}")
    priced = f"{1 - unpriced / installed:.1%} of the time has a price" if installed else ""
    typer.echo(f"  {'cost':<18} {cost:>14,.2f} {currency}   {priced}")
    ratio = f"{held / available:>14.1%}" if available else f"{'not known':>14}"
    typer.echo(
        f"  {'allocation ratio':<18} {ratio}   held / (installed - unavailable - unrecorded)"
    )


def serve_dashboard(home: "Home", port: int) -> None:
    """Serve the lake's pages until Ctrl-C."""
    from pipelines.up import dashboard, supervise

    command, more = dashboard(home.path, port)
    typer.echo(f"\ndashboard: http://127.0.0.1:{port} (Ctrl-C ends it)")
    if supervise({"dashboard": command}, {**os.environ, **more}, home.path) is not None:
        stop("the dashboard ended", 1)
