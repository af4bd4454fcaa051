"""One timer, which does nothing."""
import os

import kopf


@kopf.timer(os.environ["GROUP"], "v1", "widgets", interval=float(os.environ["INTERVAL"]))
async def tick(**_):
    pass
