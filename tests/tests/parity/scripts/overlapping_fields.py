import kopf
from journal import WIDGETS, called


@kopf.on.field(*WIDGETS, field="spec", param="changed/spec")
@kopf.on.field(*WIDGETS, field="spec.size", param="changed/spec.size")
def changed(param, **kwargs):
    called(param, **kwargs)
