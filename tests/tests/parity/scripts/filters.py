import kopf
from journal import WIDGETS, called


@kopf.on.create(*WIDGETS, labels={"tier": "gold"})
def label_equals(**kwargs):
    called("label_equals", **kwargs)


@kopf.on.create(*WIDGETS, labels={"tier": kopf.PRESENT})
def label_present(**kwargs):
    called("label_present", **kwargs)


@kopf.on.create(*WIDGETS, labels={"tier": kopf.ABSENT})
def label_absent(**kwargs):
    called("label_absent", **kwargs)


@kopf.on.create(*WIDGETS, annotations={"note": "yes"})
def annotation_equals(**kwargs):
    called("annotation_equals", **kwargs)


@kopf.on.create(*WIDGETS, annotations={"note": kopf.PRESENT}, labels={"tier": kopf.PRESENT})
def both_present(**kwargs):
    called("both_present", **kwargs)


@kopf.on.create(*WIDGETS, field="spec.size", value=3)
def value_equals(**kwargs):
    called("value_equals/spec.size", **kwargs)


@kopf.on.create(*WIDGETS, when=lambda spec, **_: spec.get("size", 0) > 2)
def when_big(**kwargs):
    called("when_big", **kwargs)


def is_gold(value, **_):
    return value == "gold"


def is_tin(value, **_):
    return value == "tin"


def is_big(spec, **_):
    return spec.get("size", 0) > 2


def is_huge(spec, **_):
    return spec.get("size", 0) > 4


@kopf.on.create(*WIDGETS, labels={"tier": kopf.any_([is_gold, is_tin])}, when=kopf.not_(is_huge))
def any_and_not(**kwargs):
    called("any_and_not", **kwargs)


@kopf.on.create(*WIDGETS, labels={"tier": kopf.none_([is_gold, is_tin])}, when=kopf.any_([is_huge, kopf.not_(is_big)]))
def none_and_any(**kwargs):
    called("none_and_any", **kwargs)


@kopf.on.create(*WIDGETS, when=kopf.all_([is_big, is_huge]))
def all_of_both(**kwargs):
    called("all_of_both", **kwargs)


@kopf.on.update(*WIDGETS, field="spec.size", old=3, new=4)
def transition(**kwargs):
    called("transition/spec.size", **kwargs)
