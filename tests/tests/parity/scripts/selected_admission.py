"""Webhooks on all kinds of a category and of a group; certificates and names are given."""
import os

import kopf

from journal import WIDGETS

GROUP = os.environ["GROUP"]
CATEGORY = os.environ["CATEGORY"]
CERTS = os.environ["CERTS"]


@kopf.on.startup()
def configure(settings, **_):
    settings.admission.managed = os.environ["MANAGED"]
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1",
        cafile=f"{CERTS}/ca.crt",
        certfile=f"{CERTS}/tls.crt",
        pkeyfile=f"{CERTS}/tls.key",
    )


@kopf.on.event(*WIDGETS)
def watched(**_):
    pass


@kopf.on.validate(category=CATEGORY)
def by_category(resource, warnings, **_):
    warnings.append(f"{resource.kind} by category")


@kopf.on.validate(GROUP, kopf.EVERYTHING, operations=["CREATE"])
def by_group(resource, warnings, **_):
    warnings.append(f"{resource.kind} by group")


@kopf.on.mutate(category=CATEGORY)
def complete(patch, **_):
    patch.spec["size"] = 3
