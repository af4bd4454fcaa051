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


@kopf.on.update(*WIDGETS, field="spec.size", old=3, new=4)
def transition(**kwargs):
    called("transition/spec.size", **kwargs)
