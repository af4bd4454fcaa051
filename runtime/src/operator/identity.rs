//! Who this operator is to others: a pod, or somebody's process on some machine.

use std::env;

use jiff::Timestamp;

/// Kopf's letters for the random end; they lack a g.
const LETTERS: &[u8] = b"abcdefhijklmnopqrstuvwxyz0123456789";

/// The variable in which a Deployment tells a pod its name.
const POD_ID: &str = "POD_ID";

/// How an operator is named that has no name of its own.
pub(super) fn of_process(now: Timestamp) -> String {
    let random: String = (0..3)
        .map(|_| char::from(LETTERS[fastrand::usize(..LETTERS.len())]))
        .collect();
    of_pod().unwrap_or_else(|| format!("{}/{}/{random}", person(), now.strftime("%Y%m%d%H%M%S")))
}

/// How a person is named who pauses operators by hand: the same every time.
pub(super) fn of_person() -> String {
    of_pod().unwrap_or_else(person)
}

/// A name that no other process has, also not the next one in the same pod.
pub(super) fn unique(identity: &str) -> String {
    format!("{identity}_{:08x}", fastrand::u32(..))
}

fn of_pod() -> Option<String> {
    env::var(POD_ID).ok().filter(|id| !id.is_empty())
}

fn person() -> String {
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
        .map(|host| descriptive(&host))
        .find(|host| !host.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}

/// The part of a host's name that tells something.
fn descriptive(host: &str) -> String {
    let host = host.trim();
    let host = host.strip_suffix(".local").unwrap_or(host);
    host.strip_suffix(".localdomain").unwrap_or(host).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_lose_what_says_nothing() {
        assert_eq!(descriptive("laptop.local\n"), "laptop");
        assert_eq!(descriptive("laptop.localdomain"), "laptop");
        assert_eq!(descriptive("node1.example.com"), "node1.example.com");
    }

    #[test]
    fn two_processes_of_one_pod_can_be_told_apart() {
        let (first, second) = (unique("pod-1"), unique("pod-1"));
        assert!(first.starts_with("pod-1_"));
        assert_ne!(first, second);
    }
}
