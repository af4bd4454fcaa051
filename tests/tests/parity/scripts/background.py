import kopf
from journal import WIDGETS, note


def run(handler, name, what, **_):
    note({"handler": handler, "object": name, "does": what})


@kopf.daemon(*WIDGETS, labels={"role": "steady"})
async def steady(name, stopped, **_):
    run("steady", name, "starts")
    await stopped.wait()
    run("steady", name, "stops")


@kopf.daemon(*WIDGETS, labels={"role": "shaky"}, backoff=0.1)
async def shaky(name, retry, patch, **_):
    run("shaky", name, f"attempt {retry}")
    patch.status["attempts"] = retry + 1
    if retry == 0:
        raise kopf.TemporaryError("not yet", delay=0.1)
    if retry == 1:
        raise ValueError("oops")
    return {"done": retry}


@kopf.daemon(*WIDGETS, labels={"role": "hopeless"})
async def hopeless(name, **_):
    run("hopeless", name, "fails")
    raise kopf.PermanentError("never")


@kopf.timer(*WIDGETS, labels={"role": "timed"}, interval=3600)
async def timed(name, spec, **_):
    run("timed", name, "ticks")
    return {"size": spec["size"]}


@kopf.timer(*WIDGETS, labels={"role": "idle"}, idle=4, interval=3600)
async def idle(name, spec, **_):
    run("idle", name, f"ticks at {spec['size']}")
