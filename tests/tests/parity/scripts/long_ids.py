import kopf
from journal import WIDGETS, called


def handler(id):
    @kopf.on.create(*WIDGETS, id=id)
    def create_fn(retry, **kwargs):
        called(id, retry=retry, **kwargs)
        if retry == 0:
            raise kopf.TemporaryError("once more", delay=3)
        return {"done": True}


handler("main.<locals>.create_fn")
handler("a_rather_long_handler_name_for_testing_the_cut.spec.some.field")
handler("update_fn_with_a_very_long_name_that_surely_exceeds_limits/sub-handler-one")
handler("x" * 64)
