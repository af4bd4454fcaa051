import kopf
from journal import WIDGETS, called


@kopf.on.delete(*WIDGETS)
def delete_fn(retry, **kwargs):
    called("delete_fn", retry=retry, **kwargs)
    if retry == 0:
        raise kopf.TemporaryError("still in use", delay=2)
    return {"deleted": True}
