"""Records as ksi_hooks itself would write them, to fill a registry with."""

import os
import time

from ksi_hooks import proc
from ksi_hooks.lifecycle.context import Context
from ksi_hooks.registry.record import Record, State, cluster_name

PORTS = range(30000, 32768)  # Kubernetes' node ports


def make(context: Context, number: int, *, node: str) -> Record:
    """The record of a ready cluster of job `number`, whose creator has ended."""
    cluster = cluster_name(number, f"{number % 0x100000:05x}")
    moment = time.time()
    return Record(
        cluster=cluster,
        node=node,
        boot_id=proc.boot_id(),
        job_id=number,
        restart=0,
        port=PORTS[number % len(PORTS)],
        run_dir=context.user_dir.cluster_dir(cluster),
        creator=proc.Process(2, 1),  # not the one that has this number
        held_by_creator=False,
        state=State.READY,
        created=moment,
        changed=moment,
        uid=os.getuid(),
    )
