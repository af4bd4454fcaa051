import kopf
from journal import WIDGETS, called

ID = "create_fn_with_a_very_long_name_that_surely_exceeds_limits/sub-handler-one"


@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(v1=False, verbose=True)


@kopf.on.create(*WIDGETS, id=ID)
def create_fn(retry, **kwargs):
    called(ID, retry=retry, **kwargs)
    if retry == 0:
        raise kopf.TemporaryError("once more", delay=3600)
