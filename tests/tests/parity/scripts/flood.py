import kopf
from journal import WIDGETS


@kopf.on.create(*WIDGETS)
async def create_fn(body, **_):
    for number in range(10_000):
        kopf.event(body, type="Normal", reason="Said", message="the same again")
