//! The name of this operator in peerings and leases: that of its pod, or of a user and a host.

use std::env;

use jiff::Timestamp;

/// Kopf's letters for the random suffix; they lack a g.
const LETTERS: &[u8] = b"abcdefhijklmnopqrstuvwxyz0123456789";

/// The variable by which a Deployment gives a pod its name.
const POD_ID: &str = "POD_ID";

/// The default name of an operator's process.
pub(super) fn of_process(now: Timestamp) -> String {
    let random: String = (0..3)
        .map(|_| char::from(LETTERS[fastrand::usize(..LETTERS.len())]))
        .collect();
    of_pod().unwrap_or_else(|| {
        format!(
            "{}/{}/{random}",
            user_and_host(),
            now.strftime("%Y%m%d%H%M%S")
        )
    })
}

/// The default name in `freeze` and `resume`; the same every time.
pub(super) fn of_user() -> String {
    of_pod().unwrap_or_else(user_and_host)
}

/// A name that no other process has, not even the next one in the same pod.
pub(super) fn unique(identity: &str) -> String {
    format!("{identity}_{:08x}", fastrand::u32(..))
}

fn of_pod() -> Option<String> {
    env::var(POD_ID).ok().filter(|id| !id.is_empty())
}

fn user_and_host() -> String {
    let user = ["LOGNAME", "USER", "LNAME", "USERNAME"]
        .into_iter()
        .find_map(|name| env::var(name).ok().filter(|user| !user.is_empty()));
    format!("{}@{}", user.as_deref().unwrap_or("user"), host())
}

fn host() -> String {
    let named = ["HOSTNAME", "COMPUTERNAME"].into_iter();
    let named = named.filter_map(|name| env::var(name).ok());
    let filed = ["/proc/sys/kernel/hostname", "/etc/hostname"].into_iter();
    let filed = filed.filter_map(|file| std::fs::read_to_string(file).ok());
    named
        .chain(filed)
        .map(|host| without_local_domain(&host))
        .find(|host| !host.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}

/// The name of a host without a local domain.
fn without_local_domain(host: &str) -> String {
    let host = host.trim();
    let host = host.strip_suffix(".local").unwrap_or(host);
    host.strip_suffix(".localdomain").unwrap_or(host).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_domains_are_cut_from_host_names() {
        assert_eq!(without_local_domain("laptop.local\n"), "laptop");
        assert_eq!(without_local_domain("laptop.localdomain"), "laptop");
        assert_eq!(
            without_local_domain("node1.example.com"),
            "node1.example.com"
        );
    }

    #[test]
    fn two_processes_of_one_pod_have_different_names() {
        let (first, second) = (unique("pod-1"), unique("pod-1"));
        assert!(first.starts_with("pod-1_"));
        assert_ne!(first, second);
    }
}
