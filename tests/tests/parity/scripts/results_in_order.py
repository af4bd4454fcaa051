import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS)
def first(status, **kwargs):
    called("first", **kwargs)
    second = status.get("second")
    if not second:
        raise kopf.TemporaryError("no result yet", delay=1)
    return {"after": second["made"]}


@kopf.on.create(*WIDGETS)
def second(**kwargs):
    called("second", **kwargs)
    return {"made": "it"}
