impl From<{{ name }}> for i64 {
    fn from(value: {{ name }}) -> Self {
        match value {
{% for (variant, number) in variants %}            {{ name }}::{{ variant }} => {{ number }},
{% endfor %}{% if open %}            {{ name }}::Other(number) => number,
{% endif %}        }
    }
}

{% if open %}impl From<i64> for {{ name }} {
    fn from(number: i64) -> Self {
        match number {
{% for (variant, number) in variants %}            {{ number }} => Self::{{ variant }},
{% endfor %}            other => Self::Other(other),
        }
    }
}{% else %}impl TryFrom<i64> for {{ name }} {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, Self::Error> {
        match number {
{% for (variant, number) in variants %}            {{ number }} => Ok(Self::{{ variant }}),
{% endfor %}            other => Err(format!("{other} is not one of the allowed values")),
        }
    }
}{% endif %}
