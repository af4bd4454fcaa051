//! The operator as `inspect` and `unstick` see it: storages, kinds and handlers, without a process.

use kopf_core::handler::registry::Registry;

use super::{Error, Operator};
use crate::inspect::{InspectedKind, InspectedOperator, KnownHandlers};

impl Operator {
    /// The storages, kinds and handlers.
    pub(super) fn inspected(&self) -> Result<InspectedOperator, Error> {
        let persistence = self.settings.persistence.clone();
        let kinds = self.resources.iter().map(|resource| {
            let specs = resource.handlers.iter().map(|handler| handler.spec.clone());
            let handlers: Vec<_> = specs.clone().map(|spec| spec.id).collect();
            let registry = Registry::new(specs).map_err(|source| Error::Declaration {
                kind: resource.target.to_string(),
                source,
            })?;
            Ok(InspectedKind {
                wanted: resource.target.wanted(),
                handlers: KnownHandlers {
                    ids: handlers,
                    rules: registry.essence_rules(&persistence.ignored),
                },
            })
        });
        let kinds = kinds.collect::<Result<Vec<_>, Error>>()?;
        Ok(InspectedOperator { persistence, kinds })
    }
}
