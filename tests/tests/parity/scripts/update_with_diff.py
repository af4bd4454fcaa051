import kopf
from journal import WIDGETS, called


@kopf.on.update(*WIDGETS)
def update_fn(**kwargs):
    called("update_fn", **kwargs)
    return {"updated": True}


@kopf.on.field(*WIDGETS, field="spec.size")
def resize(**kwargs):
    called("resize/spec.size", **kwargs)


@kopf.on.update(*WIDGETS, field="spec.colour")
def repaint(**kwargs):
    called("repaint/spec.colour", **kwargs)
