import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS)
def first(**kwargs):
    called("first", **kwargs)
    return {"done": 1}


@kopf.on.create(*WIDGETS)
def second(retry, **kwargs):
    called("second", retry=retry, **kwargs)
    if retry == 0:
        raise kopf.TemporaryError("wait for it", delay=2)
    return {"done": 2}


@kopf.on.create(*WIDGETS)
def third(**kwargs):
    called("third", **kwargs)
    return {"done": 3}
