"""One quick handler and one that needs a retry."""
import os

import kopf

WIDGETS = (os.environ["GROUP"], "v1", "widgets")


@kopf.on.create(*WIDGETS)
@kopf.on.update(*WIDGETS)
def quick(name, spec, **_):
    print(f"SAW {name} {spec['value']}", flush=True)


@kopf.on.create(*WIDGETS)
@kopf.on.update(*WIDGETS)
def flaky(retry, **_):
    if retry == 0:
        raise kopf.TemporaryError("not at once", delay=1)
