/// A number or a string, such as a port or a percentage.
#[derive({{ derives }})]
#[serde(untagged)]
pub enum {{ name }} {
    Int(i64),
    String(String),
}

impl From<intstr::IntOrString> for {{ name }} {
    fn from(value: intstr::IntOrString) -> Self {
        match value {
            intstr::IntOrString::Int(number) => Self::Int(number.into()),
            intstr::IntOrString::String(text) => Self::String(text),
        }
    }
}

impl TryFrom<{{ name }}> for intstr::IntOrString {
    type Error = std::num::TryFromIntError;

    fn try_from(value: {{ name }}) -> Result<Self, Self::Error> {
        match value {
            {{ name }}::Int(number) => Ok(Self::Int(number.try_into()?)),
            {{ name }}::String(text) => Ok(Self::String(text)),
        }
    }
}
