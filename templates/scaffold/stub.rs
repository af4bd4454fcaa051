{% for line in doc -%}
/// {{ line }}
{% endfor -%}
{% for line in signature -%}
{{ line }}
{% endfor -%}
{% for line in body %}    {{ line }}
{% endfor -%}
}
