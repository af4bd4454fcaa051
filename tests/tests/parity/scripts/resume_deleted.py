import kopf
from journal import WIDGETS, called


@kopf.on.resume(*WIDGETS)
def resume_living(**kwargs):
    called("resume_living", **kwargs)


@kopf.on.resume(*WIDGETS, deleted=True)
def resume_any(**kwargs):
    called("resume_any", **kwargs)


@kopf.on.delete(*WIDGETS)
def delete_fn(**kwargs):
    called("delete_fn", **kwargs)
