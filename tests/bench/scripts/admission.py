"""One validating check, on a port and with certificates that the benchmark gives."""
import os

import kopf

CERTS = os.environ["CERTS"]


@kopf.on.startup()
def configure(settings, **_):
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1",
        port=int(os.environ["PORT"]),
        certfile=f"{CERTS}/tls.crt",
        pkeyfile=f"{CERTS}/tls.key",
    )


@kopf.on.validate(os.environ["GROUP"], "v1", "widgets")
def check(spec, **_):
    if spec["size"] > 100:
        raise kopf.AdmissionError("too large")
