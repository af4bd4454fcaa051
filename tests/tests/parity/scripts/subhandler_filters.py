import kopf
from journal import WIDGETS, called

FILTERS = {
    "any": {"field": "spec.size"},
    "two": {"field": "spec.size", "value": 2},
    "from_one": {"field": "spec.size", "old": 1},
    "to_three": {"field": "spec.size", "new": 3},
    "one_to_two": {"field": "spec.size", "old": 1, "new": 2},
    "appeared": {"field": "spec.size", "old": kopf.ABSENT, "new": kopf.PRESENT},
    "gone": {"field": "spec.size", "old": kopf.PRESENT, "new": kopf.ABSENT},
    "gold": {"field": "metadata.labels.tier", "value": "gold"},
    "whole": {},
}


def register(parent, id, **options):
    @kopf.subhandler(id=id, **options)
    def part(**kwargs):
        called(f"{parent}/{id}", **kwargs)


@kopf.on.create(*WIDGETS)
async def create_fn(**kwargs):
    called("create_fn", **kwargs)
    for id, options in FILTERS.items():
        if "old" not in options and "new" not in options:
            register("create_fn", id, **options)
    await kopf.execute(lifecycle=kopf.lifecycles.all_at_once)


@kopf.on.update(*WIDGETS)
async def update_fn(**kwargs):
    called("update_fn", **kwargs)
    for id, options in FILTERS.items():
        register("update_fn", id, **options)
    await kopf.execute(lifecycle=kopf.lifecycles.all_at_once)


@kopf.on.field(*WIDGETS, field="spec")
async def spec_fn(**kwargs):
    called("spec_fn/spec", **kwargs)
    # Kopf resolves the field of a sub-handler within the field of its parent.
    register("spec_fn/spec", "two", field="size", new=2)
    register("spec_fn/spec", "whole")
    await kopf.execute(lifecycle=kopf.lifecycles.all_at_once)
