//! The options for the page of the operator.

use clap::Args;

use crate::page::address::PageSetup;

/// The options for the page.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Page")]
pub(in crate::operator) struct PageArgs {
    /// Serve a page at this HTTP address that shows what the operator does
    ///
    /// It must be an address of this machine for itself: the page has no login.
    #[arg(long, value_name = "http://HOST:PORT", env = "KOPF_RUN_PAGE")]
    page: Option<PageSetup>,

    /// Let the page be opened under this host name, too, and listen on any address; may be given
    /// several times
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        env = "KOPF_RUN_PAGE_HOST",
        requires = "page"
    )]
    page_host: Vec<String>,

    /// Let the page retry, change and delete objects, on a developer's machine
    ///
    /// The address that the operator logs has a token, without which nothing can be changed.
    #[arg(
        long,
        env = "KOPF_RUN_PAGE_EDITS",
        requires = "page",
        conflicts_with = "page_host"
    )]
    page_edits: bool,
}

impl PageArgs {
    /// Where the page is served, if the options ask for it.
    pub(in crate::operator) fn setup(&self) -> Option<PageSetup> {
        let page = self.page.clone()?;
        let hosts = self.page_host.iter();
        let page = hosts.fold(page, |page, host| page.host(host));
        Some(if self.page_edits { page.edits() } else { page })
    }
}
