{% for line in docs %}{{ line }}
{% endfor %}
#![allow(dead_code, unused_imports, reason = "not all of it is used")]

{% for version in versions %}pub mod {{ version.name }}{% if version.body.is_empty() %};{% else %} {
{{ version.body }}
}{% endif %}
{% endfor %}
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// The CRD from which these types were generated, as JSON.
pub const CRD: &str = {{ crd }};

/// The CRD from which these types were generated.
pub fn crd() -> CustomResourceDefinition {
    serde_json::from_str(CRD).expect("the generator has parsed this CRD")
}
