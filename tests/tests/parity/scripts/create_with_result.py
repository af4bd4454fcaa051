import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS)
def create_map(spec, **kwargs):
    called("create_map", **kwargs)
    return {"size": spec["size"], "nested": {"ready": True}}


@kopf.on.create(*WIDGETS)
def create_text(**kwargs):
    called("create_text", **kwargs)
    return "größe ✓"


@kopf.on.create(*WIDGETS)
def create_nothing(**kwargs):
    called("create_nothing", **kwargs)
