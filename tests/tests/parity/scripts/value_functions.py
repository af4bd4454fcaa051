"""Functions for values that look at the whole object, too."""
import kopf
from journal import WIDGETS, called


def is_own_tier(value, spec, **_):
    return value == spec.get("tier")


def is_limit(value, spec, **_):
    return value == spec.get("limit")


def is_below(value, spec, **_):
    return value is not None and value < spec.get("limit", 0)


def is_above(value, spec, **_):
    return value is not None and value >= spec.get("limit", 0)


@kopf.on.create(*WIDGETS, labels={"tier": is_own_tier})
def own_tier(**kwargs):
    called("own_tier", **kwargs)


@kopf.on.create(*WIDGETS, field="spec.size", value=is_limit)
def at_limit(**kwargs):
    called("at_limit/spec.size", **kwargs)


@kopf.on.update(*WIDGETS, field="spec.size", old=is_below, new=is_above)
def crossing(**kwargs):
    called("crossing/spec.size", **kwargs)
