"""A fleet that does not exist: it speaks the sources' own formats and writes the truth beside them.

It imports nothing of the rest, or its truth would prove nothing. How recorded input becomes tables
belongs to `collectors` and `sql`; here is only what a platform does, and what of it can be known.

The events come first, on a clock (`fleet`, `world`, `controllers`, `kubelet`, `schedulers`,
`tenants`, `faults`, `oddities`, `players`), and are written as a recorder would write them, with
the truth of holds, waits and money (`truth*`). If metrics are asked for, what the GPUs did
meanwhile is worked out afterwards (`gpus`, `casting`, `scripts`, `phases`, `tracks`), read as
exporters read it (`readings`, `spoilt`, `exporters`, `dcgm`, `kube_metrics`, `cadvisor`,
`openmetrics`), and its truth is written too (`truth_gpus`, `truth_episodes`, `truth_measured`).
"""

from simulator.fleet import build
