import os

import kopf
from journal import WIDGETS


@kopf.on.startup()
def live_shortly(settings, **_):
    settings.peering.lifetime = int(os.environ.get("LIFETIME", 60))


@kopf.on.create(*WIDGETS)
def work(patch, **_):
    patch.status["by"] = "python"
