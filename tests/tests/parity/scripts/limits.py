import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS, retries=2)
def twice(**kwargs):
    called("twice", **kwargs)
    raise kopf.TemporaryError("no", delay=0.1)


@kopf.on.create(*WIDGETS, timeout=1)
def short(**kwargs):
    called("short", **kwargs)
    raise kopf.TemporaryError("no", delay=5)
