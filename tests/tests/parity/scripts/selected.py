import os

import kopf

GROUP = os.environ["GROUP"]
CATEGORY = os.environ["CATEGORY"]
SHORT_NAME = os.environ["SHORT_NAME"]
TWIN = os.environ["TWIN"]


def seen(handler, resource, name):
    print(f"SEEN {handler} {resource.plural}.{resource.group} {name}", flush=True)


@kopf.on.event(category=CATEGORY)
async def by_category(resource, name, **_):
    seen("by_category", resource, name)


@kopf.on.event(GROUP, kopf.EVERYTHING)
async def by_group(resource, name, **_):
    seen("by_group", resource, name)


@kopf.on.event(SHORT_NAME)
async def by_name(resource, name, **_):
    seen("by_name", resource, name)


@kopf.on.event(kind=TWIN)
async def ambiguous(resource, name, **_):
    seen("ambiguous", resource, name)
