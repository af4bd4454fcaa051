//! Addresses of simulated Pods: from 198.18.0.0/15, which RFC 2544 keeps for benchmarks, so that
//! none of them is ever a real peer.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

const FIRST: u32 = u32::from_be_bytes([198, 18, 0, 1]);

/// Without the first and the last address of the range.
const COUNT: u32 = (1 << 17) - 2;

/// An address for the Pod with this uid, different from those that other Pods have.
///
/// The same uid gets the same address unless it is taken, so that a Pod keeps its address if the
/// node stops before it has reported it.
pub(super) fn choose(uid: &str, taken: &BTreeSet<Ipv4Addr>) -> Ipv4Addr {
    let start = hash(uid) % COUNT;
    (0..COUNT)
        .map(|step| Ipv4Addr::from(FIRST + (start + step) % COUNT))
        .find(|address| !taken.contains(address))
        // There are never so many Pods; then two share an address.
        .unwrap_or_else(|| Ipv4Addr::from(FIRST + start))
}

/// FNV-1a, which unlike the standard library's hasher gives the same value with every compiler.
fn hash(uid: &str) -> u32 {
    uid.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_stable_outside_of_real_networks_and_never_taken_twice() {
        let mut taken = BTreeSet::new();
        let first = choose("a", &taken);
        assert_eq!(first, choose("a", &taken));
        for _ in 0..500 {
            let next = choose("a", &taken);
            assert_eq!(next.octets()[0], 198);
            assert!(matches!(next.octets()[1], 18 | 19), "{next}");
            assert!(taken.insert(next), "{next} twice");
        }
    }

    #[test]
    fn the_range_wraps_around_at_its_end() {
        let all_but_one: BTreeSet<Ipv4Addr> = (1..COUNT)
            .map(|step| Ipv4Addr::from(FIRST + step))
            .collect();
        assert_eq!(choose("any", &all_but_one), Ipv4Addr::from(FIRST));
    }
}
