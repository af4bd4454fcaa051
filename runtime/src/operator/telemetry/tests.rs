//! The export of traces to a collector on loopback.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use tracing_subscriber::layer::SubscriberExt as _;

use super::*;
use crate::events::span;

/// A span as the collector received it.
#[derive(Debug, Default, Clone, PartialEq)]
struct ReceivedSpan {
    trace: Vec<u8>,
    id: Vec<u8>,
    parent: Vec<u8>,
    name: String,
    attributes: BTreeMap<String, String>,
    begun: u64,
    ended: u64,
}

/// One field of a protobuf message.
enum ProtobufField<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a protobuf message, by their numbers.
fn fields(mut message: &[u8]) -> Vec<(u64, ProtobufField<'_>)> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let field = match key & 7 {
            0 => ProtobufField::Number(varint(&mut message)),
            1 => {
                let (number, rest) = message.split_first_chunk().expect("eight bytes");
                message = rest;
                ProtobufField::Number(u64::from_le_bytes(*number))
            }
            2 => {
                let length = usize::try_from(varint(&mut message)).expect("a length");
                let (bytes, rest) = message.split_at(length);
                message = rest;
                ProtobufField::Bytes(bytes)
            }
            5 => {
                message = &message[4..];
                continue;
            }
            other => panic!("there is no wire type {other}"),
        };
        found.push((key >> 3, field));
    }
    found
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = message.split_first().expect("a number has an end");
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

fn messages(message: &[u8], number: u64) -> Vec<&[u8]> {
    let fields = fields(message).into_iter();
    let chosen = fields.filter_map(|(of, field)| match field {
        ProtobufField::Bytes(bytes) if of == number => Some(bytes),
        _ => None,
    });
    chosen.collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn attribute(pair: &[u8]) -> (String, String) {
    let key = text(messages(pair, 1)[0]);
    let value = messages(pair, 2)[0];
    let value = match fields(value).into_iter().next() {
        Some((1, ProtobufField::Bytes(value))) => text(value),
        Some((3, ProtobufField::Number(value))) => value.to_string(),
        _ => String::new(),
    };
    (key, value)
}

fn read_span(message: &[u8]) -> ReceivedSpan {
    let mut span = ReceivedSpan::default();
    for (number, field) in fields(message) {
        match (number, field) {
            (1, ProtobufField::Bytes(id)) => span.trace = id.to_vec(),
            (2, ProtobufField::Bytes(id)) => span.id = id.to_vec(),
            (4, ProtobufField::Bytes(id)) => span.parent = id.to_vec(),
            (5, ProtobufField::Bytes(name)) => span.name = text(name),
            (7, ProtobufField::Number(time)) => span.begun = time,
            (8, ProtobufField::Number(time)) => span.ended = time,
            (9, ProtobufField::Bytes(pair)) => span.attributes.extend([attribute(pair)]),
            _ => {}
        }
    }
    span
}

/// A batch: its head, the attributes of its resource, and its spans.
type ReceivedBatch = (String, BTreeMap<String, String>, Vec<ReceivedSpan>);

/// Receives one batch.
fn collector() -> (String, mpsc::Receiver<ReceivedBatch>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (taken, batches) = mpsc::channel();
    thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a batch");
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            reader.read_line(&mut head).expect("a line");
        }
        let length = head.lines().find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        });
        let mut body = vec![0; length.expect("a length")];
        reader.read_exact(&mut body).expect("a body");
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        reader.get_mut().write_all(answer).expect("an answer");
        let batch = messages(&body, 1)[0];
        let resource = messages(messages(batch, 1)[0], 1);
        let resource = resource.into_iter().map(attribute).collect();
        let scopes = messages(batch, 2).into_iter();
        let spans = scopes.flat_map(|scope| messages(scope, 2)).map(read_span);
        // The test may have failed already.
        let _ = taken.send((head, resource, spans.collect()));
    });
    (format!("http://{address}/v1/traces"), batches)
}

#[test]
fn the_spans_of_an_object_and_its_attempts_arrive_at_a_collector() {
    let (endpoint, collector) = collector();
    let telemetry = Telemetry::new("evc-operator", Some(&endpoint)).unwrap();
    let subscriber = tracing_subscriber::registry().with(telemetry.layer());
    tracing::subscriber::with_default(subscriber, || {
        span::object("kopf.dev/v1", "KopfExample", Some("ns"), "one", "u-1").in_scope(|| {
            span::handler("create_fn", 2).in_scope(|| tracing::info!("done"));
        });
    });
    drop(telemetry);
    let batch = collector.recv_timeout(Duration::from_secs(20));
    let (head, resource, spans) = batch.expect("a batch has read_span");
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert!(
        head.to_lowercase()
            .contains("content-type: application/x-protobuf")
    );
    assert_eq!(resource["service.name"], "evc-operator");
    let named = |name: &str| spans.iter().find(|span| span.name == name).expect("a span");
    let (object, handler) = (named(span::OBJECT), named(span::HANDLER));
    assert_eq!(object.attributes["kind"], "KopfExample");
    assert_eq!(object.attributes["namespace"], "ns");
    assert_eq!(object.attributes["name"], "one");
    assert_eq!(handler.attributes["id"], "create_fn");
    assert_eq!(handler.attributes["retry"], "2");
    assert_eq!(handler.parent, object.id);
    assert_eq!(handler.trace, object.trace);
    assert!(object.begun <= handler.begun && handler.ended <= object.ended);
}

#[test]
fn without_a_collector_only_the_traces_are_lost() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1/traces", free.local_addr().unwrap());
    drop(free);
    let telemetry = Telemetry::new("evc-operator", Some(&endpoint)).unwrap();
    let subscriber = tracing_subscriber::registry().with(telemetry.layer());
    tracing::subscriber::with_default(subscriber, || {
        span::handler("create_fn", 0).in_scope(|| {});
    });
    drop(telemetry);
}
