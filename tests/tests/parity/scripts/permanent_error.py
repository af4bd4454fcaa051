import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS)
def create_fn(**kwargs):
    called("create_fn", **kwargs)
    raise kopf.PermanentError("never")


@kopf.on.create(*WIDGETS)
def create_other(**kwargs):
    called("create_other", **kwargs)
    return {"other": True}
