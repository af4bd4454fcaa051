import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS)
def create_fn(spec, **kwargs):
    called("create_fn", **kwargs)

    for item in spec["items"]:

        @kopf.subhandler(id=item)
        def create_item(retry, item=item, **kwargs):
            called(f"create_fn/{item}", retry=retry, **kwargs)
            if item == "b" and retry == 0:
                raise kopf.TemporaryError("b is late", delay=2)
            return {"item": item}

    return {"parent": True}
