"""The kind under test, and the journal of calls that both operators write to their log."""
import json
import logging
import os

import kopf

WIDGETS = (os.environ["GROUP"], "v1", "widgets")


@kopf.on.startup()
def post_errors(settings, **_):
    """Errors are posted as events here, as they are by our runtime, and by Kopf up to 1.43."""
    settings.posting.loggers = True
    settings.posting.level = logging.ERROR


def called(handler, *, name, reason, retry, old, new, diff, **_):
    """Notes one call of a change handler."""
    note({
        "handler": handler,
        "object": name,
        "reason": str(reason),
        "retry": retry,
        "old": old,
        "new": new,
        "diff": sorted([op, list(path), was, now] for op, path, was, now in diff),
    })


def seen(handler, *, name, type, **_):
    """Notes one call of an event handler."""
    note({"handler": handler, "object": name, "type": type})


def note(call):
    # One write, because handlers run in several threads, and between line ends of its own.
    line = "\nCALL " + json.dumps(call, default=plain) + "\n"
    os.write(1, line.encode())


def plain(view):
    """Kopf's read-only views are mappings, which the json module does not take."""
    return dict(view)
