"""One create handler, which writes one result."""
import os

import kopf


@kopf.on.create(os.environ["GROUP"], "v1", "widgets")
async def create_fn(spec, **_):
    return {"size": spec["size"]}
