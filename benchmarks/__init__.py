"""How fast and how large: a fleet of any size through the real pipeline, in seconds, GB and rows.

`uv run python -m benchmarks` prints the figures; nothing of the product imports this folder.
"""
