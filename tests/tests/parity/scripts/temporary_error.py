import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS)
def create_fn(retry, **kwargs):
    called("create_fn", retry=retry, **kwargs)
    if retry < 2:
        raise kopf.TemporaryError(f"not yet: {retry}", delay=2)
    return {"attempts": retry + 1}
