//! A definition around the schemas of a fixture, which are the properties of the object.

/// The definition of a kind.
pub(crate) fn definition(kind: &str, properties: &str) -> String {
    let plural = kind.to_lowercase() + "s";
    let indented: String = properties
        .lines()
        .map(|line| format!("          {line}\n"))
        .collect();
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{kind: {kind}, plural: {plural}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
{indented}"
    )
}
