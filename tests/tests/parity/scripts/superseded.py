import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS)
def create_fn(**kwargs):
    called("create_fn", **kwargs)
    raise kopf.TemporaryError("busy", delay=60)


@kopf.on.delete(*WIDGETS)
def delete_fn(retry, **kwargs):
    called("delete_fn", retry=retry, **kwargs)
    if retry == 0:
        raise kopf.TemporaryError("still busy", delay=2)
