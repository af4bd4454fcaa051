//! The trait for the hooks of the operator, and the registration of its methods.

/// The hooks that `kopf.yaml` declares under `operator.handlers`.
pub trait Hooks: Send + Sync + 'static {
    {% for method in methods -%}
    {% for line in method.doc -%}
    /// {{ line }}
    {% endfor -%}
    {% match method.shape -%}
    {% when MethodSignature::Handler with { context } -%}
    fn {{ method.name }}(&self, cx: &mut kopf_runtime::{{ context }}) -> impl std::future::Future<Output = kopf_runtime::{{ context.result() }}> + Send;
    {% when _ -%}
    {% endmatch -%}
    {% endfor %}
}

/// Registers the methods at the runtime.
pub(super) fn handlers<S: Hooks>(state: &std::sync::Arc<S>) -> kopf_runtime::OperatorHandlers {
    kopf_runtime::Hooks::new(state)
    {% for registration in registrations -%}
        .{{ registration.register }}({{ registration.declaration }}, |state, cx| Box::pin(state.{{ registration.method }}(cx)))
    {% endfor -%}
        .build()
}
