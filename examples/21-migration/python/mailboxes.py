"""The operator of mailboxes, as it was in Python."""
import kopf

import mail_server

MAILBOXES = ("mail.example.com", "v1", "mailboxes")


@kopf.on.startup()
def wait_for_handlers(settings, **_):
    settings.queueing.exit_timeout = 60


@kopf.on.create(*MAILBOXES)
def create_account(name, **kwargs):
    mail_server.call("create_account", name=name, **kwargs)
    return {"account": f"{name}@example.com"}


@kopf.on.create(*MAILBOXES)
def create_folders(spec, **_):
    for folder in spec.get("folders", []):

        @kopf.subhandler(id=folder)
        def create_folder(folder=folder, **kwargs):
            mail_server.call(f"create_folders/{folder}", **kwargs)


@kopf.on.update(*MAILBOXES, field="spec.quota")
def change_quota(old, new, **kwargs):
    mail_server.call("change_quota", change=[old, new], **kwargs)


@kopf.on.resume(*MAILBOXES)
def check_account(**kwargs):
    mail_server.call("check_account", **kwargs)


@kopf.on.delete(*MAILBOXES)
def delete_account(**kwargs):
    mail_server.call("delete_account", **kwargs)


@kopf.daemon(*MAILBOXES)
async def deliver(name, stopped, **_):
    mail_server.log("deliver", name, outcome="starts")
    await stopped.wait()
    mail_server.log("deliver", name, outcome="stops")


@kopf.timer(*MAILBOXES, interval=5)
async def backup(name, **_):
    mail_server.log("backup", name, outcome="done")
