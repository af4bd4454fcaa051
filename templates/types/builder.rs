impl {{ name }} {
{% for setter in setters %}    /// Sets `{{ setter.ident }}`.
    #[must_use]
    pub fn {{ setter.name }}(mut self, value: impl Into<{{ setter.ty }}>) -> Self {
        self.{{ setter.ident }} = {{ setter.value }};
        self
    }
{% if !loop.last %}
{% endif %}{% endfor %}}
