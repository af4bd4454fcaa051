import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS, backoff=2)
def retried(retry, **kwargs):
    called("retried", retry=retry, **kwargs)
    if retry == 0:
        raise ValueError("oops")


@kopf.on.create(*WIDGETS, errors=kopf.ErrorsMode.PERMANENT)
def given_up(**kwargs):
    called("given_up", **kwargs)
    raise ValueError("oops")


@kopf.on.create(*WIDGETS, errors=kopf.ErrorsMode.IGNORED)
def ignored(**kwargs):
    called("ignored", **kwargs)
    raise ValueError("oops")
