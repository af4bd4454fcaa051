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
        raise kopf.TemporaryError("wait for it", delay=4)
    return {"done": 2}


@kopf.on.update(*WIDGETS)
def update_first(**kwargs):
    called("update_first", **kwargs)


@kopf.on.update(*WIDGETS)
def update_second(retry, **kwargs):
    called("update_second", retry=retry, **kwargs)
    if retry == 0:
        raise kopf.TemporaryError("wait for it", delay=4)


@kopf.on.delete(*WIDGETS)
def delete_first(**kwargs):
    called("delete_first", **kwargs)


@kopf.on.delete(*WIDGETS)
def delete_second(retry, **kwargs):
    called("delete_second", retry=retry, **kwargs)
    if retry == 0:
        raise kopf.TemporaryError("wait for it", delay=4)
