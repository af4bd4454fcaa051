import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS, labels={"managed": "yes"})
def create_fn(**kwargs):
    called("create_fn", **kwargs)


@kopf.on.delete(*WIDGETS, labels={"managed": "yes"})
def delete_fn(**kwargs):
    called("delete_fn", **kwargs)
