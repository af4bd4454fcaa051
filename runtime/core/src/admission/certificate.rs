//! The few facts of a certificate that decisions need: who, by whom, from when until when.

use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time},
    tz::Offset,
};

/// What a certificate says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The serial number, in hexadecimal digits.
    pub serial: String,
    /// Who signed it.
    pub issuer: DistinguishedName,
    /// Whom it is about.
    pub subject: DistinguishedName,
    /// When it begins to count.
    pub not_before: Timestamp,
    /// When it ceases to count.
    pub not_after: Timestamp,
    /// The names of machines that it is for, besides the subject.
    pub dns_names: Vec<String>,
}

/// A distinguished name, as attributes in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistinguishedName(Vec<(String, String)>);

/// The bytes are not a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not an X.509 certificate")]
pub struct NotACertificate;

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;
const BMP_STRING: u8 = 0x1e;

/// The identifier of the extension with alternative names of the subject.
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];

/// Bytes that are taken value by value.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

// === impl Certificate ===

impl Certificate {
    /// Reads a certificate in its binary form.
    ///
    /// # Errors
    /// If it is not one.
    pub fn from_der(der: &[u8]) -> Result<Self, NotACertificate> {
        Self::read(der).ok_or(NotACertificate)
    }

    fn read(der: &[u8]) -> Option<Self> {
        let mut certificate = Der(Der(der).take(SEQUENCE)?);
        let mut body = Der(certificate.take(SEQUENCE)?);
        body.take_if(VERSION);
        let serial = body.take(INTEGER)?;
        body.take(SEQUENCE)?;
        let issuer = DistinguishedName::read(body.take(SEQUENCE)?)?;
        let mut validity = Der(body.take(SEQUENCE)?);
        let not_before = validity.time()?;
        let not_after = validity.time()?;
        let subject = DistinguishedName::read(body.take(SEQUENCE)?)?;
        let serial = match serial {
            [0, rest @ ..] if !rest.is_empty() => rest,
            all => all,
        };
        Some(Self {
            serial: serial.iter().map(|byte| format!("{byte:02X}")).collect(),
            issuer,
            subject,
            not_before,
            not_after,
            dns_names: dns_names(body).unwrap_or_default(),
        })
    }
}

// === impl DistinguishedName ===

impl DistinguishedName {
    /// The attributes in their order, such as `("commonName", "admin")`.
    #[must_use]
    pub fn attributes(&self) -> &[(String, String)] {
        &self.0
    }

    /// The first attribute of this name.
    #[must_use]
    pub fn get(&self, attribute: &str) -> Option<&str> {
        let found = self.0.iter().find(|(name, _)| name == attribute);
        found.map(|(_, value)| value.as_str())
    }

    /// The common name.
    #[must_use]
    pub fn common_name(&self) -> Option<&str> {
        self.get("commonName")
    }

    fn read(der: &[u8]) -> Option<Self> {
        let mut sets = Der(der);
        let mut attributes = Vec::new();
        while !sets.0.is_empty() {
            let mut set = Der(sets.take(SET)?);
            while !set.0.is_empty() {
                let mut pair = Der(set.take(SEQUENCE)?);
                let attribute = attribute_name(pair.take(OBJECT_IDENTIFIER)?);
                let (tag, value) = pair.next()?;
                attributes.push((attribute, text(tag, value)));
            }
        }
        Some(Self(attributes))
    }
}

// === impl Der ===

impl<'a> Der<'a> {
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let length = digits
                    .iter()
                    .fold(0usize, |length, digit| length << 8 | usize::from(*digit));
                (length, rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, value))
    }

    fn take(&mut self, expected: u8) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let (tag, value) = ahead.next()?;
        (tag == expected).then(|| {
            *self = ahead;
            value
        })
    }

    fn take_if(&mut self, expected: u8) {
        self.take(expected);
    }

    fn time(&mut self) -> Option<Timestamp> {
        let (tag, value) = self.next()?;
        let text = std::str::from_utf8(value).ok()?.strip_suffix('Z')?;
        let (year, rest) = match tag {
            UTC_TIME => {
                let (year, rest) = text.split_at_checked(2)?;
                let year: i16 = year.parse().ok()?;
                (if year < 50 { 2000 + year } else { 1900 + year }, rest)
            }
            GENERALIZED_TIME => {
                let (year, rest) = text.split_at_checked(4)?;
                (year.parse().ok()?, rest)
            }
            _ => return None,
        };
        let part = |at: usize| rest.get(at..at + 2)?.parse::<i8>().ok();
        let date = Date::new(year, part(0)?, part(2)?).ok()?;
        let time = Time::new(part(4)?, part(6)?, part(8)?, 0).ok()?;
        Offset::UTC
            .to_timestamp(DateTime::from_parts(date, time))
            .ok()
    }
}

/// The names in what follows the subject of a certificate.
fn dns_names(mut rest: Der<'_>) -> Option<Vec<String>> {
    let extensions = std::iter::from_fn(|| rest.next()).find(|(tag, _)| *tag == EXTENSIONS);
    let mut extensions = Der(Der(extensions?.1).take(SEQUENCE)?);
    while let Some(extension) = extensions.take(SEQUENCE) {
        let mut extension = Der(extension);
        let oid = extension.take(OBJECT_IDENTIFIER)?;
        extension.take_if(BOOLEAN);
        if oid != ALTERNATIVE_NAMES {
            continue;
        }
        let mut names = Der(Der(extension.take(OCTET_STRING)?).take(SEQUENCE)?);
        let names = std::iter::from_fn(|| names.next()).filter(|(tag, _)| *tag == DNS_NAME);
        return Some(names.map(|(tag, name)| text(tag, name)).collect());
    }
    None
}

fn attribute_name(oid: &[u8]) -> String {
    let known = match oid {
        [0x55, 4, 3] => "commonName",
        [0x55, 4, 5] => "serialNumber",
        [0x55, 4, 6] => "countryName",
        [0x55, 4, 7] => "localityName",
        [0x55, 4, 8] => "stateOrProvinceName",
        [0x55, 4, 10] => "organizationName",
        [0x55, 4, 11] => "organizationalUnitName",
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1] => "emailAddress",
        _ => return oid.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    known.to_owned()
}

fn text(tag: u8, value: &[u8]) -> String {
    if tag == BMP_STRING {
        let units = value
            .chunks_exact(2)
            .map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
        return char::decode_utf16(units)
            .map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect();
    }
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use proptest::prelude::*;

    use super::*;

    /// Made by `openssl req -x509 -subj "/CN=Example/O=Kopf/emailAddress=example@kopf.dev"`.
    const EXAMPLE: &str = include_str!("certificate/example.pem");

    fn example() -> Vec<u8> {
        let lines = EXAMPLE.lines().filter(|line| !line.starts_with('-'));
        STANDARD.decode(lines.collect::<String>()).expect("base64")
    }

    #[test]
    fn a_certificate_tells_whom_it_is_about_and_until_when() {
        let certificate = Certificate::from_der(&example()).expect("a certificate");
        assert_eq!(certificate.subject.common_name(), Some("Example"));
        assert_eq!(certificate.subject.get("organizationName"), Some("Kopf"));
        assert_eq!(
            certificate.subject.get("emailAddress"),
            Some("example@kopf.dev")
        );
        assert_eq!(certificate.issuer, certificate.subject);
        let lifetime = certificate.not_after.duration_since(certificate.not_before);
        assert_eq!(lifetime.as_secs(), 36500 * 24 * 3600);
        assert!(!certificate.serial.is_empty());
    }

    proptest! {
        #[test]
        fn anything_else_is_refused_without_harm(
            at in any::<prop::sample::Index>(), byte in any::<u8>(), length in any::<prop::sample::Index>(),
        ) {
            let mut der = example();
            let at = at.index(der.len());
            der[at] = byte;
            der.truncate(length.index(der.len() + 1));
            let _ = Certificate::from_der(&der);
        }
    }
}
