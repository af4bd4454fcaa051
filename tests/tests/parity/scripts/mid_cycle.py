import kopf
from journal import WIDGETS, called


@kopf.on.update(*WIDGETS)
def quick(**kwargs):
    called("quick", **kwargs)


@kopf.on.update(*WIDGETS)
def slow(retry, **kwargs):
    called("slow", retry=retry, **kwargs)
    if retry == 0:
        raise kopf.TemporaryError("later", delay=3)
