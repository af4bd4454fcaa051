import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS)
def create_fn(**kwargs):
    called("create_fn", **kwargs)
    return {"created": True}


@kopf.on.update(*WIDGETS)
def update_fn(**kwargs):
    called("update_fn", **kwargs)
    return {"updated": True}


@kopf.on.delete(*WIDGETS)
def delete_fn(**kwargs):
    called("delete_fn", **kwargs)
