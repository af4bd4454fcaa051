import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS)
def create_fn(patch, retry, **kwargs):
    called("create_fn", retry=retry, **kwargs)
    patch.spec["owner"] = "operator"
    patch.status["phase"] = f"attempt {retry}"
    patch.meta["labels"] = {"seen": "yes"}
    if retry == 0:
        raise kopf.TemporaryError("once more", delay=0.5)


@kopf.on.update(*WIDGETS)
def update_fn(**kwargs):
    called("update_fn", **kwargs)
