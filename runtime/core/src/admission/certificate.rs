//! Reads the facts of an X.509 certificate that decisions need: subject, issuer, and validity.
//!
//! The crate `der` reads the encoding. The fields of a certificate are read here, since crates
//! that know them all (`x509-cert`, `x509-parser`) add six to twelve crates to every operator.

use der::{
    Decode as _, Reader as _, SliceReader, Tag, TagNumber, Tagged as _,
    asn1::{AnyRef, GeneralizedTime, OctetStringRef, UtcTime},
};
use jiff::Timestamp;

use crate::time::after;

/// The facts that a certificate states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The serial number, in hexadecimal digits.
    pub serial: String,
    /// The authority that signed it.
    pub issuer: DistinguishedName,
    /// The holder.
    pub subject: DistinguishedName,
    /// The beginning of its validity.
    pub not_before: Timestamp,
    /// The end of its validity.
    pub not_after: Timestamp,
    /// The DNS names among the alternative names of the subject.
    pub dns_names: Vec<String>,
}

/// A distinguished name, as attributes in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistinguishedName(Vec<(String, String)>);

/// The bytes are not a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not an X.509 certificate")]
pub struct NotACertificate;

/// The object identifier of the extension `subjectAltName`.
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];

// === impl Certificate ===

impl Certificate {
    /// Reads a certificate in its binary form.
    ///
    /// # Errors
    /// If the bytes are not a certificate.
    pub fn from_der(der: &[u8]) -> Result<Self, NotACertificate> {
        SliceReader::new(der)
            .and_then(|mut reader| {
                reader.sequence(|certificate| {
                    let facts = certificate.sequence(Self::read)?;
                    skip_rest(certificate)?;
                    Ok(facts)
                })
            })
            .map_err(|_| NotACertificate)
    }

    fn read(fields: &mut SliceReader<'_>) -> der::Result<Self> {
        let mut serial: AnyRef<'_> = fields.decode()?;
        if is_context_specific(serial, 0) {
            // That was the version, which is optional.
            serial = fields.decode()?;
        }
        serial.tag().assert_eq(Tag::Integer)?;
        let _signature_algorithm: AnyRef<'_> = fields.decode()?;
        let issuer = DistinguishedName::read(fields)?;
        let (not_before, not_after) =
            fields.sequence(|validity| Ok::<_, der::Error>((time(validity)?, time(validity)?)))?;
        let subject = DistinguishedName::read(fields)?;
        let mut names = Vec::new();
        while !fields.is_finished() {
            let field: AnyRef<'_> = fields.decode()?;
            if is_context_specific(field, 3) {
                names = dns_names(field.value()).unwrap_or_default();
            }
        }
        let serial = match serial.value() {
            [0, rest @ ..] if !rest.is_empty() => rest,
            all => all,
        };
        Ok(Self {
            serial: serial.iter().map(|byte| format!("{byte:02X}")).collect(),
            issuer,
            subject,
            not_before,
            not_after,
            dns_names: names,
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

    fn read(reader: &mut SliceReader<'_>) -> der::Result<Self> {
        let mut attributes = Vec::new();
        reader.sequence(|sets| {
            while !sets.is_finished() {
                let set: AnyRef<'_> = sets.decode()?;
                set.tag().assert_eq(Tag::Set)?;
                let mut set = SliceReader::new(set.value())?;
                while !set.is_finished() {
                    attributes.push(set.sequence(|attribute| {
                        let name = attribute_name(object_identifier(attribute)?);
                        let value: AnyRef<'_> = attribute.decode()?;
                        Ok::<_, der::Error>((name, text(value)))
                    })?);
                }
            }
            Ok::<_, der::Error>(())
        })?;
        Ok(Self(attributes))
    }
}

fn is_context_specific(field: AnyRef<'_>, number: u32) -> bool {
    let expected = Tag::ContextSpecific {
        constructed: true,
        number: TagNumber(number),
    };
    field.tag() == expected
}

fn skip_rest(reader: &mut SliceReader<'_>) -> der::Result<()> {
    while !reader.is_finished() {
        let _: AnyRef<'_> = reader.decode()?;
    }
    Ok(())
}

fn time(reader: &mut SliceReader<'_>) -> der::Result<Timestamp> {
    let since_epoch = match Tag::peek(reader)? {
        Tag::UtcTime => reader.decode::<UtcTime>()?.to_unix_duration(),
        _ => reader.decode::<GeneralizedTime>()?.to_unix_duration(),
    };
    Ok(after(Timestamp::UNIX_EPOCH, since_epoch))
}

fn object_identifier<'a>(reader: &mut SliceReader<'a>) -> der::Result<&'a [u8]> {
    let oid: AnyRef<'a> = reader.decode()?;
    oid.tag().assert_eq(Tag::ObjectIdentifier)?;
    Ok(oid.value())
}

/// The DNS names in the extensions of a certificate.
fn dns_names(extensions: &[u8]) -> der::Result<Vec<String>> {
    let mut found = Vec::new();
    SliceReader::new(extensions)?.sequence(|list| {
        while !list.is_finished() {
            let (oid, content) = list.sequence(|extension| {
                let oid = object_identifier(extension)?;
                let _critical: Option<bool> = extension.decode()?;
                let content: &OctetStringRef = extension.decode()?;
                Ok::<_, der::Error>((oid, content.as_bytes()))
            })?;
            if oid == SUBJECT_ALT_NAME {
                found = SliceReader::new(content)?.sequence(general_dns_names)?;
            }
        }
        Ok::<_, der::Error>(())
    })?;
    Ok(found)
}

fn general_dns_names(names: &mut SliceReader<'_>) -> der::Result<Vec<String>> {
    let dns_name = Tag::ContextSpecific {
        constructed: false,
        number: TagNumber(2),
    };
    let mut found = Vec::new();
    while !names.is_finished() {
        let name = AnyRef::decode(names)?;
        if name.tag() == dns_name {
            found.push(text(name));
        }
    }
    Ok(found)
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

fn text(string: AnyRef<'_>) -> String {
    let bytes = string.value();
    if string.tag() == Tag::BmpString {
        let units = bytes
            .chunks_exact(2)
            .map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
        return char::decode_utf16(units)
            .map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect();
    }
    String::from_utf8_lossy(bytes).into_owned()
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
    fn subject_issuer_and_validity_are_read() {
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

    #[test]
    fn dns_names_are_read_from_the_alternative_names() {
        let extension = [
            0x30, 0x19, 0x30, 0x17, 0x06, 0x03, 0x55, 0x1d, 0x11, 0x01, 0x01, 0xff, 0x04, 0x0d,
            0x30, 0x0b, 0x82, 0x03, b'a', b'.', b'b', 0x87, 0x04, 127, 0, 0, 1,
        ];
        assert_eq!(dns_names(&extension), Ok(vec!["a.b".to_owned()]));
    }

    proptest! {
        #[test]
        fn damaged_bytes_are_read_or_rejected_without_a_panic(
            at in any::<prop::sample::Index>(), byte in any::<u8>(), length in any::<prop::sample::Index>(),
        ) {
            let mut der = example();
            let at = at.index(der.len());
            der[at] = byte;
            der.truncate(length.index(der.len() + 1));
            let _ = Certificate::from_der(&der);
        }

        #[test]
        fn any_bytes_are_rejected_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = (Certificate::from_der(&bytes), dns_names(&bytes));
        }
    }
}
