//! The live page of the operator that a session runs.

use std::net::TcpListener;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

/// The programs that open an address in the user's browser.
const OPENERS: [&str; 2] = ["xdg-open", "open"];

/// The page of the operators of one session; clones share it.
#[derive(Clone, Debug)]
pub(super) struct SessionPage {
    origin: String,
    /// The address with the token of the present operator. Never held across an await.
    address: Arc<Mutex<Option<String>>>,
}

impl SessionPage {
    /// A page on a free port, the same for all operators of the session; none if there is none.
    pub(super) fn on_free_port() -> Option<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).ok()?;
        let port = listener.local_addr().ok()?.port();
        Some(Self {
            origin: format!("http://127.0.0.1:{port}"),
            address: Arc::default(),
        })
    }

    /// The arguments of the operator.
    pub(super) fn arguments(&self) -> [String; 3] {
        [
            "--page".to_owned(),
            self.origin.clone(),
            "--page-edits".to_owned(),
        ]
    }

    /// Remembers the address that the operator logs.
    pub(super) fn notice(&self, line: &str) {
        if let Some(start) = line.find(&self.origin) {
            let rest = &line[start..];
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let address = rest[..end].trim_end_matches(['.', ',', ';']).to_owned();
            *self.address.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
        }
    }

    /// Opens the page in the browser; the address if no program for that is there.
    pub(super) fn open(&self) -> Result<(), String> {
        let address = self.address.lock().unwrap_or_else(PoisonError::into_inner);
        let address = address.clone().unwrap_or_else(|| self.origin.clone());
        let open = |opener: &&str| {
            let mut opener = std::process::Command::new(opener);
            let opener = opener.arg(&address).stdin(Stdio::null());
            let opener = opener.stdout(Stdio::null()).stderr(Stdio::null());
            opener.spawn().is_ok()
        };
        if OPENERS.iter().any(open) {
            Ok(())
        } else {
            Err(address)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_with_its_token_is_taken_from_the_log() {
        let page = SessionPage::on_free_port().expect("there is a free port");
        let address = format!("{}/#token=abc", page.origin);
        page.notice(&format!("[INFO] the page is at {address}"));
        page.notice("another line");
        let known = page.address.lock().expect("no thread panicked").clone();
        assert_eq!(known, Some(address));
    }
}
