{% for line in docs %}{{ line }}
{% endfor %}{% for line in attributes %}{{ line }}
{% endfor %}{% if fields.is_empty() %}pub struct {{ name }} {}{% else %}pub struct {{ name }} {
{% for field in fields %}{% for line in field.docs %}    {{ line }}
{% endfor %}{% for line in field.attributes %}    {{ line }}
{% endfor %}    pub {{ field.ident }}:{{ field.ty }},
{% endfor %}}{% endif %}
