//! The indices that `kopf.yaml` declares, with the types of their keys and values.

use kopf_runtime::Index;

{% for index in indices -%}
{% for line in index.doc -%}
/// {{ line }}
{% endfor -%}
#[derive(Clone, Copy, Debug)]
pub struct {{ index.type_name }};

impl Index for {{ index.type_name }} {
    type Key = {{ index.keys }};
    type Value = {{ index.values }};
    const NAME: &'static str = {{ index.name }};
}
{% endfor %}
