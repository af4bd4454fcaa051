/// A number or a text, such as a port or a percentage.
#[derive({{ derives }})]
#[serde(untagged)]
pub enum IntOrString {
    Int(i64),
    String(String),
}

impl From<intstr::IntOrString> for IntOrString {
    fn from(value: intstr::IntOrString) -> Self {
        match value {
            intstr::IntOrString::Int(number) => Self::Int(number.into()),
            intstr::IntOrString::String(text) => Self::String(text),
        }
    }
}

impl TryFrom<IntOrString> for intstr::IntOrString {
    type Error = std::num::TryFromIntError;

    fn try_from(value: IntOrString) -> Result<Self, Self::Error> {
        match value {
            IntOrString::Int(number) => Ok(Self::Int(number.try_into()?)),
            IntOrString::String(text) => Ok(Self::String(text)),
        }
    }
}
