import kopf
from journal import WIDGETS, called


@kopf.on.field(*WIDGETS, field="spec.size")
def size(**kwargs):
    called("size/spec.size", **kwargs)


@kopf.on.field(*WIDGETS, field="metadata.labels")
def labels(**kwargs):
    called("labels/metadata.labels", **kwargs)


@kopf.on.field(*WIDGETS, field="status.phase")
def phase(**kwargs):
    called("phase/status.phase", **kwargs)


@kopf.on.field(*WIDGETS, field=("metadata", "labels", "app.kubernetes.io/name"))
def name(**kwargs):
    called("name/metadata.labels.app.kubernetes.io/name", **kwargs)
