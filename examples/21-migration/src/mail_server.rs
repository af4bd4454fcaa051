//! The mail server: a folder outside of the cluster, with a log of all that it was asked to do.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;

use kopf_runtime::prelude::*;

use crate::generated::mailbox::Mailbox;

/// A connection to the server in the folder `$MAIL_SERVER`.
#[derive(Clone, Debug)]
pub struct MailServer {
    folder: PathBuf,
    client: String,
}

impl Default for MailServer {
    fn default() -> Self {
        let variable = |name, default: &str| std::env::var(name).unwrap_or(default.to_owned());
        Self {
            folder: variable("MAIL_SERVER", ".").into(),
            client: variable("MAIL_CLIENT", "rust"),
        }
    }
}

impl MailServer {
    /// Does one operation, unless the server is in maintenance and the mailbox postpones it.
    pub fn call(
        &self,
        cx: &ChangeContext<Mailbox>,
        operation: &str,
        change: &Value,
    ) -> HandlerResult {
        let spec = &cx.object().spec;
        let postponed = spec.postponed.iter().flatten().any(|it| it == operation)
            && self.folder.join("maintenance").exists();
        let outcome = if postponed { "postponed" } else { "done" };
        let details = json!({"outcome": outcome, "retry": cx.retry(), "change": change});
        self.log(operation, cx.name(), details)?;
        if postponed {
            let patience = Duration::from_secs(spec.patience.unsigned_abs());
            let message = "The mail server is in maintenance.";
            return Err(HandlerError::temporary_after(patience, message));
        }
        Ok(())
    }

    /// Adds one line, by one write: several handlers may do so at once.
    pub fn log(&self, operation: &str, mailbox: &str, details: Value) -> io::Result<()> {
        let mut line = json!({"client": self.client, "operation": operation, "mailbox": mailbox});
        for (name, value) in details.as_object().into_iter().flatten() {
            line[name] = value.clone();
        }
        let file = self.folder.join("log");
        let mut file = OpenOptions::new().append(true).create(true).open(file)?;
        file.write_all(format!("{line}\n").as_bytes())
    }
}
