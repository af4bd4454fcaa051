import asyncio

import kopf
from journal import WIDGETS, note


def run(handler, name, what):
    note({"handler": handler, "object": name, "does": what})


@kopf.timer(*WIDGETS, labels={"role": "refused"}, interval=0.2)
async def refused(name, **_):
    run("refused", name, "fails")
    raise kopf.PermanentError("never")


@kopf.daemon(*WIDGETS, labels={"role": "slow"}, cancellation_polling=1)
async def slow(name, stopped, **_):
    run("slow", name, "starts")
    await stopped.wait()
    await asyncio.sleep(3)


@kopf.on.delete(*WIDGETS, labels={"role": "slow"})
async def release(name, **_):
    run("release", name, "is called")
