"""The fleet of shares: each layout of an eight-slice card on a node of its own, every device held.

The layouts themselves are in `devices`; HAMi's cards here are held so that cores and memory differ.
"""

from simulator.controllers import Platform
from simulator.nodes import GPU
from simulator.pods import Plan
from simulator.recipes import Recipe, make_pod

SHARES = ((30000, 20), (9000, 70), (40000, 30), (3000, 65), (12000, 10), (23034, 50))
"""MiB and hundredths of the cores: the first two fill a card's memory and cores beyond 1."""


def fill(platform: Platform) -> None:
    """A pod for each device of each node, some of them short, so that remainders are seen too."""
    world = platform.world
    for node in list(world.nodes.values()):
        if node.sharing == "hami":
            continue
        for resource, units in node.devices.items():
            for number in range(units):
                hours = 24 * 400 if number % 3 else world.rng.uniform(8, 20)
                recipe = Recipe(
                    f"{node.pool}-{resource.rsplit('-', 1)[1].replace('.', '-')}-{number}",
                    "science-hpc",
                    node.pool,
                    resource,
                    1,
                    Plan(run=hours * 3600),
                )
                world.clock.after(world.rng.uniform(0, 3600), _submit, platform, recipe)
    for number in range(24):
        recipe = Recipe(
            f"part-{number}",
            "vision",
            "hami",
            GPU,
            2 if number % 5 == 0 else 1,
            Plan(run=world.rng.uniform(5, 30) * 3600),
            share=SHARES[number % len(SHARES)],
        )
        world.clock.after(3600 + 1200 * number, _submit, platform, recipe)


def _submit(platform: Platform, recipe: Recipe) -> None:
    platform.create(make_pod(platform.world, recipe, recipe.name, None, recipe.plan))
