{% for line in docs %}{{ line }}
{% endfor %}{% for line in attributes %}{{ line }}
{% endfor %}pub struct {{ name }} {
    pub metadata: ObjectMeta,
{% for field in fields %}{% for line in field.docs %}    {{ line }}
{% endfor %}{% for line in field.attributes %}    {{ line }}
{% endfor %}    pub {{ field.ident }}:{{ field.ty }},
{% endfor %}}

impl k8s_openapi::Resource for {{ name }} {
    const API_VERSION: &'static str = {{ api_version }};
    const GROUP: &'static str = {{ group }};
    const KIND: &'static str = {{ kind }};
    const VERSION: &'static str = {{ version }};
    const URL_PATH_SEGMENT: &'static str = {{ plural }};
    type Scope = k8s_openapi::{{ scope }}ResourceScope;
}

impl k8s_openapi::Metadata for {{ name }} {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Serialize for {{ name }} {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry({{ tag }})?;
        map.serialize_entry("kind", {{ kind }})?;
        map.serialize_entry("metadata", &self.metadata)?;
{% for field in serialized %}{% if field.optional %}        if let Some({{ field.ident }}) = &self.{{ field.ident }} {
            map.serialize_entry({{ field.arguments }})?;
        }
{% else %}        map.serialize_entry({{ field.arguments }})?;
{% endif %}{% endfor %}{% if let Some(rest) = rest %}        for (key, value) in &self.{{ rest }} {
            map.serialize_entry(key, value)?;
        }
{% endif %}        map.end()
    }
}
