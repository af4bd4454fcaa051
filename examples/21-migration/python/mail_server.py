"""The mail server: a folder outside of the cluster, with a log of all that it was asked to do."""
import json
import os
from pathlib import Path

import kopf

FOLDER = Path(os.environ["MAIL_SERVER"])
CLIENT = os.environ.get("MAIL_CLIENT", "python")


def call(operation, *, name, spec, retry, change=None, **_):
    """Does one operation, unless the server is in maintenance and the mailbox postpones it."""
    postponed = operation in spec.get("postponed", []) and (FOLDER / "maintenance").exists()
    outcome = "postponed" if postponed else "done"
    log(operation, name, outcome=outcome, retry=retry, change=change)
    if postponed:
        raise kopf.TemporaryError("The mail server is in maintenance.", delay=spec["patience"])


def log(operation, mailbox, **details):
    """Adds one line, by one write: several handlers may do so at once."""
    line = {"client": CLIENT, "operation": operation, "mailbox": mailbox, **details}
    file = os.open(FOLDER / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)
