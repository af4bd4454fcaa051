"""The operator under trouble, as it is written for Python Kopf: the same handlers, the same journal.

It has neither webhooks nor children: Kopf leaves children to the handlers of each operator.
"""
import asyncio
import json
import os
import time
import zlib

import kopf

KIND = (os.environ["FAULTS_GROUP"], "v1", "widgets")
PREFIX = "kopf.zalando.org/"
JOURNAL = os.open(os.environ["FAULTS_JOURNAL"], os.O_WRONLY | os.O_APPEND)
PID = os.getpid()


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


BORN = now()
calls = 0


def append(line):
    os.write(JOURNAL, f"\n{json.dumps(line)}\n".encode())


def state_of(body):
    metadata = body["metadata"]
    annotations = dict(metadata.get("annotations", {}))
    annotations = {key: text for key, text in annotations.items() if not key.startswith(PREFIX)}
    return {
        "metadata": {"labels": dict(metadata.get("labels", {})), "annotations": annotations},
        "spec": json.loads(json.dumps(dict(body.get("spec", {})))),
    }


class Call:
    """A call that has begun. Unless it ends, the operator has dropped it."""

    def __init__(self, handler, retry, body):
        global calls
        calls += 1
        metadata = body["metadata"]
        self.line = {
            "line": "call", "pid": PID, "born": BORN, "call": calls, "handler": handler,
            "retry": retry or 0, "uid": metadata["uid"], "name": metadata["name"],
            "version": int(metadata["resourceVersion"]), "state": {"raw": state_of(body)},
        }
        self.write("begin")

    def write(self, step):
        append({**self.line, "at": now(), "step": step})

    async def work(self, coroutine):
        try:
            result = await coroutine
        except kopf.PermanentError:
            self.write("failure")
            raise
        except kopf.TemporaryError:
            self.write("retry")
            raise
        except BaseException:
            self.write("cut")
            raise
        self.write("success")
        return result


async def attempt(handler, retry, body, patch):
    """Works for a moment, and fails as often as the handlers of the other operators do."""
    text = json.dumps([body["metadata"]["uid"], handler, state_of(body)], sort_keys=True)
    number = zlib.crc32(text.encode())
    await asyncio.sleep((1 + number % 40) / 1000)
    if (retry or 0) < (1 if (number >> 8) % 4 == 0 else 0):
        raise kopf.TemporaryError("not yet", delay=0.3)
    if handler != "released" and (number >> 16) % 20 == 0:
        raise kopf.PermanentError("never")
    patch.status[handler.replace("/", "-").replace(".", "-")] = body["spec"].get("edit", 0)


async def change(handler, retry, body, patch):
    await Call(handler, retry, body).work(attempt(handler, retry, body, patch))


@kopf.on.create(*KIND, id="made")
async def made(retry, body, patch, **_):
    await change("made", retry, body, patch)


@kopf.on.create(*KIND, id="changed")
@kopf.on.update(*KIND, id="changed")
async def changed(retry, body, patch, **_):
    await change("changed", retry, body, patch)


@kopf.on.create(*KIND, id="gilded", labels={"tier": "gold"})
@kopf.on.update(*KIND, id="gilded", labels={"tier": "gold"})
async def gilded(retry, body, patch, **_):
    await change("gilded", retry, body, patch)


@kopf.on.delete(*KIND, id="released")
async def released(retry, body, patch, **_):
    await change("released", retry, body, patch)


@kopf.on.resume(*KIND, id="resumed")
async def resumed(retry, body, patch, **_):
    await change("resumed", retry, body, patch)


@kopf.on.create(*KIND, id="parts")
@kopf.on.update(*KIND, id="parts")
async def parts(retry, body, **_):
    async def left(retry, body, **_):
        async def inner(retry, body, patch, **_):
            await change("parts/left/inner", retry, body, patch)

        kopf.register(fn=inner, id="inner")
        await Call("parts/left", retry, body).work(kopf.execute())

    async def right(retry, body, patch, **_):
        await change("parts/right", retry, body, patch)

    async def shown(retry, body, patch, **_):
        await change("parts/shown", retry, body, patch)

    kopf.register(fn=left, id="left")
    if body["metadata"].get("labels", {}).get("tier") == "gold":
        kopf.register(fn=right, id="right")
    kopf.register(fn=shown, id="shown", labels={"tier": "gold"})
    await Call("parts", retry, body).work(kopf.execute())


@kopf.on.field(*KIND, id="resized", field="spec.size")
async def resized(retry, body, patch, **_):
    await change("resized/spec.size", retry, body, patch)


@kopf.daemon(*KIND, id="steady", cancellation_timeout=5)
async def steady(retry, body, stopped, **_):
    await Call("steady", retry, body).work(stopped.wait())


@kopf.index(*KIND, id="states_by_name")
async def states_by_name(namespace, name, body, **_):
    return {f"{namespace}/{name}": state_of(body)}


@kopf.timer(*KIND, id="tick", interval=2)
async def tick(name, retry, body, states_by_name, **_):
    call = Call("tick", retry, body)
    if name == "probe":
        index = {key: {"raw": list(states)[-1]} for key, states in states_by_name.items()}
        append({
            "line": "probe", "at": now(), "pid": PID,
            "tasks": len(asyncio.all_tasks()), "index": index,
        })
    call.write("success")
