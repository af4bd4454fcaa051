import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS)
def create_fn(body, **kwargs):
    called("create_fn", **kwargs)
    kopf.event(body, type="Normal", reason="Noted", message="größe ✓")
    kopf.event(body, type="Warning", reason="Warned", message="a" * 1000 + "z" * 1000)
    kopf.event(body, type="Error", reason="Failed", message="it failed")
