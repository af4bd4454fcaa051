{% for line in docs %}{{ line }}
{% endfor %}{% for line in attributes %}{{ line }}
{% endfor %}pub enum {{ name }} {
{% for variant in variants %}{% for line in variant.docs %}    {{ line }}
{% endfor %}{% for line in variant.attributes %}    {{ line }}
{% endfor %}    {{ variant.text }},
{% endfor %}}
