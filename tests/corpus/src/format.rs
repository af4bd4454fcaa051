//! String formats: examples of each, and a check of those that the API server validates.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Example texts of a format, which the API server stores unchanged; none for an unknown format.
#[must_use]
pub fn spellings(format: &str) -> &'static [&'static str] {
    match format {
        "date-time" | "datetime" => &[
            "2024-02-29T12:34:56Z",
            "2024-02-29T12:34:56.120Z",
            "2024-02-29T12:34:56+02:00",
            "2024-02-29T12:34:56.123456-05:30",
        ],
        "date" => &["2024-02-29"],
        "byte" => &["aGVsbG8=", "/+8=", "aGVsbG8gd29ybGQ="],
        "duration" => &["1h30m", "90s", "250ms", "1.5h"],
        "uuid" | "uuid4" => &[
            "9b2f3c1e-7a52-4c8e-9d57-0f6b2a1c3d4e",
            "9B2F3C1E-7A52-4C8E-9D57-0F6B2A1C3D4F",
        ],
        "uuid3" => &["9b2f3c1e-7a52-3c8e-9d57-0f6b2a1c3d4e"],
        "uuid5" => &["9b2f3c1e-7a52-5c8e-9d57-0f6b2a1c3d4e"],
        "ipv4" => &["10.0.0.1"],
        "ipv6" => &["fd00::1", "FD00:0:0::2"],
        "ip" => &["10.0.0.1", "fd00::1"],
        "cidr" => &["10.0.0.0/16", "fd00::/64"],
        "mac" => &["02:00:5e:10:00:01"],
        "uri" | "url" => &["https://example.com/path?q=1"],
        "email" => &["someone@example.com"],
        "hostname" => &["host.example.com"],
        "hexcolor" => &["#12abef"],
        "rgbcolor" => &["rgb(1,2,3)"],
        "password" => &["correct horse"],
        _ => &[],
    }
}

/// Whether a text has the format; checks only formats that distinguish branches of real unions.
#[must_use]
pub fn holds(format: &str, text: &str) -> bool {
    match format {
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => text.split_once('/').is_some_and(|(address, bits)| {
            address.parse::<IpAddr>().is_ok() && bits.parse::<u8>().is_ok()
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ip_versions_and_cidrs_are_distinguished() {
        assert!(holds("ipv4", "10.0.0.1") && !holds("ipv6", "10.0.0.1"));
        assert!(holds("cidr", "fd00::/64") && !holds("cidr", "fd00::1"));
    }

    #[test]
    fn every_spelling_has_its_format() {
        for format in ["ipv4", "ipv6", "cidr"] {
            assert!(
                spellings(format).iter().all(|text| holds(format, text)),
                "{format}"
            );
        }
    }
}
