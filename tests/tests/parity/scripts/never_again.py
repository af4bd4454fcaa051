import asyncio

import kopf
from journal import WIDGETS, called, note


@kopf.on.update(*WIDGETS, annotations={"update-fn-never-again": kopf.ABSENT})
def update_fn(patch, **kwargs):
    called("update_fn", **kwargs)
    patch.metadata.annotations["update-fn-never-again"] = "yes"
    raise kopf.PermanentError("never call it again")


@kopf.on.update(*WIDGETS, field="spec.size")
def resize(**kwargs):
    called("resize/spec.size", **kwargs)


@kopf.daemon(*WIDGETS, labels={"monitored": kopf.PRESENT}, annotations={"monitor-never-again": kopf.ABSENT})
async def monitor(name, patch, annotations, **_):
    note({"handler": "monitor", "object": name, "does": "runs"})
    # The mark is a change only after the creation was handled.
    while "kopf.zalando.org/last-handled-configuration" not in annotations:
        await asyncio.sleep(0.1)
    patch.metadata.annotations["monitor-never-again"] = "yes"
