import asyncio

import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS, timeout=1)
async def stuck(**kwargs):
    called("stuck", **kwargs)
    await asyncio.sleep(4)
    return {"late": True}
