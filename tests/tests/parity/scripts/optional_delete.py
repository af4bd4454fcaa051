import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS)
def create_fn(**kwargs):
    called("create_fn", **kwargs)


@kopf.on.delete(*WIDGETS, optional=True)
def delete_optional(**kwargs):
    called("delete_optional", **kwargs)


@kopf.on.delete(*WIDGETS, labels={"hold": kopf.PRESENT})
def delete_held(**kwargs):
    called("delete_held", **kwargs)
