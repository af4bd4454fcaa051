//! Reads `operator.namespaces`.

use kopf_core::scope::NamespacePattern;

use super::mapping::MappingFields;
use super::reader::ManifestReader;
use super::spanned::{OneOrMany, Spanned};
use crate::diagnostic::{Code, Diagnostic};
use crate::load::names::{NameRule, QuotedName, server_reason};
use crate::load::yaml::Node;

impl ManifestReader<'_> {
    pub(super) fn namespaces(
        &mut self,
        fields: &mut MappingFields<'_>,
    ) -> Option<OneOrMany<String>> {
        let node = fields.optional("namespaces")?;
        self.one_or_many(node, Self::namespace)
    }

    fn namespace(&mut self, node: &Node) -> Option<Spanned<String>> {
        let text = self.string(node, "a namespace")?;
        let pattern = NamespacePattern::new(&text.value);
        if let Some(flaw) = pattern.problem() {
            self.push(
                Diagnostic::error(
                    Code::ManifestValue,
                    format!("`{}` cannot be a pattern of namespaces", text.value),
                )
                .at(self.source, node.span, flaw.to_string())
                .help("write a name, or a pattern such as `myapp-*,!*-pr-*`"),
            );
            return None;
        }
        let name = pattern.literal().unwrap_or_default();
        if !name.is_empty()
            && let Some(reason) = NameRule::Namespace.problem(name)
        {
            let message = format!("{} cannot name a namespace", QuotedName(name));
            self.push(
                Diagnostic::error(Code::ManifestValue, message)
                    .at(self.source, node.span, "no namespace has this name")
                    .help(server_reason(&reason.to_string())),
            );
            return None;
        }
        Some(text)
    }
}
