"""The command line of the simulator; what it builds is in `fleet`."""

import argparse
from pathlib import Path

from simulator.fleet import build
from simulator.pools import SIZES


def main() -> None:
    """Build one fleet and print where its configuration is."""
    parser = argparse.ArgumentParser(prog="python -m simulator", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--clusters", type=int, default=2)
    parser.add_argument("--size", choices=SIZES, default="demo")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--metrics", action="store_true", help="what a Prometheus has, too")
    told = parser.parse_args()
    print(
        build(
            told.out,
            seed=told.seed,
            clusters=told.clusters,
            days=told.days,
            size=told.size,
            config=told.config,
            metrics=told.metrics,
        )
    )


main()
