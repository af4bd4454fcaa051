/// A quantity such as `500m` or `2Gi`, or a bare number, unchanged by a round trip.
#[derive({{ derives }})]
#[serde(untagged)]
pub enum {{ name }} {
    Int(i64),
    String(String),
}

impl From<{{ name }}> for k8s_openapi::apimachinery::pkg::api::resource::Quantity {
    fn from(quantity: {{ name }}) -> Self {
        match quantity {
            {{ name }}::Int(number) => Self(number.to_string()),
            {{ name }}::String(text) => Self(text),
        }
    }
}

impl From<k8s_openapi::apimachinery::pkg::api::resource::Quantity> for {{ name }} {
    fn from(quantity: k8s_openapi::apimachinery::pkg::api::resource::Quantity) -> Self {
        Self::String(quantity.0)
    }
}
