
#[cfg(test)]
mod tests {
{%- if !call.is_empty() %}
    use kopf_runtime::TestContext;
{% endif %}
    use super::*;
{% if !call.is_empty() %}
    #[tokio::test]
    async fn the_object_is_left_as_it_is() {
        let object = {{ object }};
        let mut cx = TestContext::new(&object).change();
{%- for line in call %}
        {{ line }}
{%- endfor %}
        assert_eq!(cx.changes(), json!({}));
    }
{% else %}
    #[test]
    fn a_child_has_the_spec_of_its_object() {
        let object = {{ object }};
        let child = child_for(&serde_json::from_value(object).unwrap()).unwrap();
        assert!(child.data.unwrap().contains_key("spec.json"));
    }
{% endif -%}
}
