//! {{ summary }}

{% for line in exported -%}
{{ line }}
{% endfor %}
/// The handlers of {{ title }} that `kopf.yaml` declares.
pub trait {{ handlers_trait }}: Send + Sync + 'static {
    {% if memo -%}
    /// The in-memory state of each {{ noun }} while the operator runs; it starts as the default.
    type Memo: kopf_runtime::Memo<{{ type_name }}>;
    {% endif -%}
    {% for method in methods -%}
    {% for line in method.doc -%}
    /// {{ line }}
    {% endfor -%}
    {% match method.shape -%}
    {% when MethodSignature::Handler with { context } -%}
    fn {{ method.name }}(&self, cx: &mut kopf_runtime::{{ context }}) -> impl std::future::Future<Output = kopf_runtime::{{ context.full_result() }}> + Send;
    {% when MethodSignature::Delay with { object } -%}
    fn {{ method.name }}(&self, object: {{ object }}) -> std::time::Duration;
    {% when MethodSignature::Predicate with { argument, argument_type } -%}
    fn {{ method.name }}(&self, {{ argument }}: {{ argument_type }}) -> bool;
    {% endmatch -%}
    {% endfor %}
}

{% match selector -%}
{% when Some with (selector) -%}
/// The selector, and the registration of the methods.
pub(super) fn resource<S: {{ handlers_trait }}>(state: &std::sync::Arc<S>) -> kopf_runtime::ResourceHandlers {
    let selector = {{ selector }};
    kopf_runtime::Resource::<{{ type_name }}, S>::selected(selector, state)
{% when None -%}
/// The API resource of {{ type_name }}, and the registration of the methods.
pub(super) fn resource<S: {{ handlers_trait }}>(state: &std::sync::Arc<S>) -> kopf_runtime::ResourceHandlers {
    let spec = kopf_runtime::ResourceSpec {
        group: {{ group }},
        version: {{ version }},
        kind: {{ kind }},
        plural: {{ plural }},
        scope: kopf_runtime::Scope::{{ scope }},
        status: kopf_runtime::StatusSubresource::{{ status }},
    };
    kopf_runtime::Resource::<{{ type_name }}, S>::new(spec, state)
{% endmatch -%}
    {% if memo -%}
        .memo::<S::Memo>()
    {% endif -%}
    {% if tracks_all -%}
        .track_always()
    {% endif -%}
    {% for registration in registrations -%}
        .{{ registration.register }}({{ registration.declaration }}, |state, cx| Box::pin(state.{{ registration.method }}(cx)))
    {% endfor -%}
        .build()
}
