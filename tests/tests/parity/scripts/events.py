import kopf
from journal import WIDGETS, called, seen


@kopf.on.event(*WIDGETS)
def spy(body, name, type, **_):
    if name == "silent" and type is not None:
        seen("spy", name=name, type=type)


@kopf.on.event(*WIDGETS)
def failing(**_):
    raise ValueError("ignored by the operator")
