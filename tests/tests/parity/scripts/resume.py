import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS)
@kopf.on.resume(*WIDGETS)
def up(**kwargs):
    called("up", **kwargs)
    return {"up": True}


@kopf.on.resume(*WIDGETS)
def resume_fn(**kwargs):
    called("resume_fn", **kwargs)


@kopf.on.update(*WIDGETS)
def update_fn(**kwargs):
    called("update_fn", **kwargs)
