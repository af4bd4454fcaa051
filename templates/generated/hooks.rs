//! What happens to the operator as a whole, and how it is wired.

use std::sync::Arc;
{% if uses_duration -%}
use std::time::Duration;
{% endif %}
use kopf_runtime::{ {{ runtime_names|join(", ") }} };

/// The handlers of the operator as a whole that `kopf.yaml` declares.
pub trait Hooks: Send + Sync + 'static {
    {% for method in methods -%}
    {% for line in method.doc -%}
    /// {{ line }}
    {% endfor -%}
    {% match method.shape -%}
    {% when MethodSignature::Handler with { context } -%}
    fn {{ method.name }}(&self, cx: &mut {{ context }}) -> impl Future<Output = {{ context.result() }}> + Send;
    {% when _ -%}
    {% endmatch -%}
    {% endfor %}
}

/// Which method is called for what.
pub(super) fn handlers<S: Hooks>(state: &Arc<S>) -> OperatorHandlers {
    kopf_runtime::Hooks::new(state)
    {% for registration in registrations -%}
        .{{ registration.register }}({{ registration.declaration }}, |state, cx| Box::pin(state.{{ registration.method }}(cx)))
    {% endfor -%}
        .build()
}
