import kopf
from journal import WIDGETS


@kopf.on.event(*WIDGETS)
def spy(spec, **_):
    return {"size": spec["size"]}
