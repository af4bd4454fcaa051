/// A quantity such as `500m` or `2Gi`, or a bare number, kept as it was written.
#[derive({{ derives }})]
#[serde(untagged)]
pub enum Quantity {
    Int(i64),
    String(String),
}

impl From<Quantity> for k8s_openapi::apimachinery::pkg::api::resource::Quantity {
    fn from(quantity: Quantity) -> Self {
        match quantity {
            Quantity::Int(number) => Self(number.to_string()),
            Quantity::String(text) => Self(text),
        }
    }
}

impl From<k8s_openapi::apimachinery::pkg::api::resource::Quantity> for Quantity {
    fn from(quantity: k8s_openapi::apimachinery::pkg::api::resource::Quantity) -> Self {
        Self::String(quantity.0)
    }
}
