//! Reads `operator.handlers`: the function that builds the state, and the startup, cleanup, login
//! and probe handlers.

use schemars::JsonSchema;

use super::duration::ManifestDuration;
use super::handler::ErrorMode;
use super::mapping::MappingFields;
use super::reader::ManifestReader;
use super::spanned::Spanned;
use crate::diagnostic::{Code, Span};
use crate::load::yaml::Node;

/// A handler of the operator itself; one of `state`, `startup`, `cleanup`, `login` and `probe` names
/// its function.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {
        "required": ["state"],
        "properties": {"state": {"type": "string"}, "startup": {"type": "null"}, "cleanup": {"type": "null"}, "login": {"type": "null"}, "probe": {"type": "null"}},
    },
    {
        "required": ["startup"],
        "properties": {"state": {"type": "null"}, "startup": {"type": "string"}, "cleanup": {"type": "null"}, "login": {"type": "null"}, "probe": {"type": "null"}},
    },
    {
        "required": ["cleanup"],
        "properties": {"state": {"type": "null"}, "startup": {"type": "null"}, "cleanup": {"type": "string"}, "login": {"type": "null"}, "probe": {"type": "null"}},
    },
    {
        "required": ["login"],
        "properties": {"state": {"type": "null"}, "startup": {"type": "null"}, "cleanup": {"type": "null"}, "login": {"type": "string"}, "probe": {"type": "null"}},
    },
    {
        "required": ["probe"],
        "properties": {"state": {"type": "null"}, "startup": {"type": "null"}, "cleanup": {"type": "null"}, "login": {"type": "null"}, "probe": {"type": "string"}},
    },
]))]
pub struct HookSection {
    /// The place of the entry.
    #[schemars(skip)]
    pub span: Span,
    /// The name of a function that builds the state of the operator, before all other handlers.
    pub state: Option<Spanned<String>>,
    /// The name of a function that must succeed before the operator sends its first request.
    pub startup: Option<Spanned<String>>,
    /// The name of a function that is called when all other handlers have ended.
    pub cleanup: Option<Spanned<String>>,
    /// The name of a function that finds credentials for the cluster.
    pub login: Option<Spanned<String>>,
    /// The name of a function that reports the health of the operator.
    pub probe: Option<Spanned<String>>,
    /// The id in log lines; the name of the function if left out.
    pub id: Option<Spanned<String>>,
    /// Any value for the function; it is the same in every call.
    pub param: Option<Spanned<serde_json::Value>>,
    /// The meaning of an error that is neither temporary nor permanent by itself.
    pub errors: Option<Spanned<ErrorMode>>,
    /// The time limit for all attempts, from the first one; for a probe, of its one call.
    pub timeout: Option<Spanned<ManifestDuration>>,
    /// The number of attempts; a probe is not retried.
    #[schemars(range(max = 4_294_967_295u32))]
    pub retries: Option<Spanned<u32>>,
    /// The pause before the next attempt; a probe is not retried.
    pub backoff: Option<Spanned<ManifestDuration>>,
}

/// The kind of a handler of the operator itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookKind {
    /// Called to build the state, before all others.
    State,
    /// Called before the operator sends its first request.
    Startup,
    /// Called when everything else has ended.
    Cleanup,
    /// Called when the operator needs credentials.
    Login,
    /// Called by health checks.
    Probe,
}

// === impl HookSection ===

impl HookSection {
    /// The kind of the handler, and its function.
    #[must_use]
    pub fn function(&self) -> Option<(HookKind, &Spanned<String>)> {
        self.functions().next()
    }

    fn functions(&self) -> impl Iterator<Item = (HookKind, &Spanned<String>)> {
        let all = [
            (HookKind::State, &self.state),
            (HookKind::Startup, &self.startup),
            (HookKind::Cleanup, &self.cleanup),
            (HookKind::Login, &self.login),
            (HookKind::Probe, &self.probe),
        ];
        all.into_iter()
            .filter_map(|(kind, name)| Some((kind, name.as_ref()?)))
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
            state: self.optional_string(&mut fields, "state"),
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
                "one of the five is missing",
            )),
            (Some(_), Some((_, second))) => {
                Some((Code::ManifestValue, second.span, "one is too many"))
            }
        };
        drop(functions);
        if let Some((code, span, label)) = fault {
            let message = "a handler of the operator has one of `state`, `startup`, `cleanup`, \
                           `login` and `probe`";
            self.error(code, span, message, label);
            return None;
        }
        Some(section)
    }
}
