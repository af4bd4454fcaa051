//! The handlers of the operator as a whole: what the manifest says under `operator.handlers`.

use schemars::JsonSchema;

use super::duration::ManifestDuration;
use super::handler::ErrorMode;
use super::mapping::MappingFields;
use super::reader::ManifestReader;
use super::spanned::Spanned;
use crate::diagnostic::{Code, Span};
use crate::load::yaml::Node;

/// A function that is called for the operator as a whole; one of `startup`, `cleanup`,
/// `login` and `probe` names it.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {
        "required": ["startup"],
        "properties": {"startup": {"type": "string"}, "cleanup": {"type": "null"}, "login": {"type": "null"}, "probe": {"type": "null"}},
    },
    {
        "required": ["cleanup"],
        "properties": {"startup": {"type": "null"}, "cleanup": {"type": "string"}, "login": {"type": "null"}, "probe": {"type": "null"}},
    },
    {
        "required": ["login"],
        "properties": {"startup": {"type": "null"}, "cleanup": {"type": "null"}, "login": {"type": "string"}, "probe": {"type": "null"}},
    },
    {
        "required": ["probe"],
        "properties": {"startup": {"type": "null"}, "cleanup": {"type": "null"}, "login": {"type": "null"}, "probe": {"type": "string"}},
    },
]))]
pub struct HookSection {
    /// Where the entry stands.
    #[schemars(skip)]
    pub span: Span,
    /// The name of a function that has to succeed before the cluster is asked for anything.
    pub startup: Option<Spanned<String>>,
    /// The name of a function that is called when all others have ended.
    pub cleanup: Option<Spanned<String>>,
    /// The name of a function that finds credentials for the cluster.
    pub login: Option<Spanned<String>>,
    /// The name of a function that is asked whether the operator is alive.
    pub probe: Option<Spanned<String>>,
    /// The id by which the log tells of it; the name of the function if left out.
    pub id: Option<Spanned<String>>,
    /// Anything that the function wants to be told; it is the same for every call.
    pub param: Option<Spanned<serde_json::Value>>,
    /// What an error means that says nothing itself about retrying.
    pub errors: Option<Spanned<ErrorMode>>,
    /// How long to keep trying, from the first attempt; how long a probe may take.
    pub timeout: Option<Spanned<ManifestDuration>>,
    /// How many attempts are made; a probe is not repeated.
    #[schemars(range(max = 4_294_967_295u32))]
    pub retries: Option<Spanned<u32>>,
    /// How long to wait before the next attempt; a probe is not repeated.
    pub backoff: Option<Spanned<ManifestDuration>>,
}

/// When a function of the operator as a whole is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookKind {
    /// Before the cluster is asked for anything.
    Startup,
    /// When everything else has ended.
    Cleanup,
    /// When credentials are needed.
    Login,
    /// When somebody asks whether the operator is alive.
    Probe,
}

// === impl HookSection ===

impl HookSection {
    /// The function, and when it is called.
    #[must_use]
    pub fn function(&self) -> Option<(HookKind, &Spanned<String>)> {
        self.functions().next()
    }

    fn functions(&self) -> impl Iterator<Item = (HookKind, &Spanned<String>)> {
        let all = [
            (HookKind::Startup, &self.startup),
            (HookKind::Cleanup, &self.cleanup),
            (HookKind::Login, &self.login),
            (HookKind::Probe, &self.probe),
        ];
        all.into_iter()
            .filter_map(|(moment, name)| Some((moment, name.as_ref()?)))
    }
}

impl ManifestReader<'_> {
    pub(super) fn hooks(&mut self, fields: &mut MappingFields<'_>) -> Vec<HookSection> {
        let Some(node) = fields.optional("handlers") else {
            return Vec::new();
        };
        self.list(node, "`handlers`", Self::hook)
            .unwrap_or_default()
    }

    fn hook(&mut self, node: &Node) -> Option<HookSection> {
        let mut fields = self.fields(node, "a handler of the operator")?;
        let section = HookSection {
            span: fields.place(),
            startup: self.optional_string(&mut fields, "startup"),
            cleanup: self.optional_string(&mut fields, "cleanup"),
            login: self.optional_string(&mut fields, "login"),
            probe: self.optional_string(&mut fields, "probe"),
            id: self.optional_string(&mut fields, "id"),
            param: fields.optional("param").map(|node| Spanned {
                value: node.to_json(),
                span: node.span,
            }),
            errors: fields
                .optional("errors")
                .and_then(|node| self.word(node, "`errors`", ErrorMode::NAMES)),
            timeout: self.duration(&mut fields, "timeout"),
            retries: self.count(&mut fields, "retries"),
            backoff: self.duration(&mut fields, "backoff"),
        };
        fields.finish(self);
        let mut functions = section.functions();
        let fault = match (functions.next(), functions.next()) {
            (Some(_), None) => None,
            (None, _) => Some((
                Code::ManifestMissing,
                section.span,
                "what is it called for?",
            )),
            (Some(_), Some((_, second))) => {
                Some((Code::ManifestValue, second.span, "one is too many"))
            }
        };
        drop(functions);
        if let Some((code, span, label)) = fault {
            let message =
                "a handler of the operator has one of `startup`, `cleanup`, `login` and `probe`";
            self.error(code, span, message, label);
            return None;
        }
        Some(section)
    }
}
