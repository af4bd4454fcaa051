"""Webhooks that check, complete and comment on widgets; certificates and names are given."""
import os

import kopf

from journal import WIDGETS, note

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


@kopf.on.validate(*WIDGETS)
def check(spec, warnings, operation, subresource, dryrun, old, new, **_):
    note({
        "operation": operation,
        "subresource": subresource,
        "dryrun": dryrun,
        "old": old and old.get("spec"),
        "new": new and new.get("spec"),
    })
    if "warn" in spec:
        warnings.append(spec["warn"])
    if "deny" in spec:
        raise kopf.AdmissionError(spec["deny"], code=spec["code"])


@kopf.on.validate(*WIDGETS, labels={"tier": "gold", "old": kopf.ABSENT}, operations=["CREATE"])
def only_gold(warnings, **_):
    warnings.append("gold")


@kopf.on.validate(*WIDGETS, subresource="status", side_effects=True, ignore_failures=True)
def check_status(warnings, **_):
    warnings.append("status")


@kopf.on.mutate(*WIDGETS)
def complete(spec, patch, **_):
    if "size" not in spec:
        patch.spec["size"] = 3
    if "remove" in spec:
        patch.spec["remove"] = None


@kopf.on.validate(*WIDGETS, when=lambda operation, userinfo, dryrun, **_: operation == "UPDATE" and userinfo["username"] and not dryrun)
def only_updates(warnings, **_):
    warnings.append("update")
