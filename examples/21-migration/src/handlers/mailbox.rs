//! Handlers for Mailbox objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::mailbox::{Mailbox, MailboxHandlers};

impl MailboxHandlers for Operator {
    /// Called when a Mailbox is created.
    async fn create_account(&self, cx: &mut ChangeContext<Mailbox>) -> HandlerResult<Value> {
        self.server.call(cx, "create_account", &Value::Null)?;
        Ok(json!({"account": format!("{}@example.com", cx.name())}))
    }

    /// Called when a Mailbox is created.
    async fn create_folders(&self, cx: &mut ChangeContext<Mailbox>) -> HandlerResult {
        for folder in cx.object().spec.folders.clone().unwrap_or_default() {
            let (server, operation) = (self.server.clone(), format!("create_folders/{folder}"));
            cx.sub(SubHandler::new(&folder), move |cx| {
                Box::pin(async move { server.call(cx, &operation, &Value::Null) })
            });
        }
        Ok(())
    }

    /// Called when `spec.quota` of a Mailbox is changed by an update.
    async fn change_quota(&self, cx: &mut FieldContext<Mailbox, i64>) -> HandlerResult {
        let change = json!([cx.old_value().known(), cx.new_value()]);
        self.server.call(cx, "change_quota", &change)
    }

    /// Called when the operator starts and finds a Mailbox.
    async fn check_account(&self, cx: &mut ChangeContext<Mailbox>) -> HandlerResult {
        self.server.call(cx, "check_account", &Value::Null)
    }

    /// Called when a Mailbox is deleted.
    async fn delete_account(&self, cx: &mut ChangeContext<Mailbox>) -> HandlerResult {
        self.server.call(cx, "delete_account", &Value::Null)
    }

    /// Runs for a Mailbox as long as the object exists.
    async fn deliver(&self, cx: &mut DaemonContext<Mailbox>) -> HandlerResult {
        let name = cx.name().to_owned();
        self.server
            .log("deliver", &name, json!({"outcome": "starts"}))?;
        cx.stop().wait().await;
        self.server
            .log("deliver", &name, json!({"outcome": "stops"}))?;
        Ok(())
    }

    /// Called for a Mailbox every 5s.
    async fn backup(&self, cx: &mut TimerContext<Mailbox>) -> HandlerResult {
        self.server
            .log("backup", cx.name(), json!({"outcome": "done"}))?;
        Ok(())
    }
}
