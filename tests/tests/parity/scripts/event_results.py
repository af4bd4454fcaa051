import kopf
from journal import WIDGETS


@kopf.on.event(*WIDGETS)
def spy(spec, **_):
    return {"size": spec["size"]}


@kopf.on.event(*WIDGETS, field="spec.size", param="size")
@kopf.on.event(*WIDGETS, field="metadata.labels", param="labels")
def part(param, **_):
    return {"is": param}
