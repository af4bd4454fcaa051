//! The rules for the conversion between versions.

use super::Rejections;
use super::keywords::Keywords;
use crate::load::names::NameRule;
use crate::load::yaml::{MapEntry, Node, Value};

const REVIEW_VERSIONS: &str = "conversionReviewVersions";

pub(super) fn check(entry: &MapEntry, found: &mut Rejections) {
    let conversion = Keywords(&entry.value);
    let webhook = conversion.get("webhook").map(Keywords);
    let client = webhook.and_then(|it| it.get("clientConfig")).map(Keywords);
    let versions = webhook.map(|it| it.strings(REVIEW_VERSIONS));
    let versions = versions.unwrap_or_default();
    match conversion.text("strategy") {
        "Webhook" => {}
        "None" => {
            if client.is_some() || !versions.is_empty() {
                let reason = "should not be set when strategy is not set to Webhook";
                found.add(conversion.at("webhook"), reason);
            }
            return;
        }
        "" => return found.add(entry.key.span, "conversion.strategy: Required value"),
        other => {
            let strategies = ["None", "Webhook"];
            return found.unsupported(conversion.at("strategy"), other, &strategies);
        }
    }
    match client {
        None => found.add(entry.key.span, "required when strategy is set to Webhook"),
        Some(client) => webhook_client(client, found),
    }
    let place = webhook.map_or(entry.key.span, |it| it.at(REVIEW_VERSIONS));
    if versions.is_empty() {
        return found.add(entry.key.span, "conversionReviewVersions: Required value");
    }
    for (index, version) in versions.iter().enumerate() {
        if versions[..index].contains(version) {
            found.add(place, "duplicate version");
        } else if let Some(problem) = NameRule::Label.problem(version) {
            found.add(place, problem.to_string());
        }
    }
    if !versions.iter().any(|it| matches!(*it, "v1" | "v1beta1")) {
        found.add(place, "must include at least one of v1, v1beta1");
    }
}

fn webhook_client(client: Keywords<'_>, found: &mut Rejections) {
    let service = client.get("service").map(Keywords);
    match (service, client.get("url").and_then(Node::as_str)) {
        (Some(service), None) => webhook_service(service, found),
        (None, Some(url)) => {
            for reason in url_problems(url) {
                found.add(client.at("url"), reason);
            }
        }
        _ => found.add(client.start(), "exactly one of url or service is required"),
    }
}

fn webhook_service(service: Keywords<'_>, found: &mut Rejections) {
    for key in ["name", "namespace"] {
        if service.text(key).is_empty() {
            found.add(service.start(), format!("service.{key}: Required value"));
        }
    }
    if let Some(Value::Int(port)) = service.get("port").map(|node| &node.value)
        && !(1..=65535).contains(port)
    {
        let reason = "port is not valid: must be between 1 and 65535, inclusive";
        found.add(service.at("port"), reason);
    }
    let path = service.text("path");
    if !matches!(path, "" | "/") {
        service_path(path, service, found);
    }
}

fn service_path(path: &str, service: Keywords<'_>, found: &mut Rejections) {
    let place = service.at("path");
    if path == "//" {
        return found.add(place, "segment[0] may not be empty");
    }
    if !path.starts_with('/') {
        found.add(place, "must start with a '/'");
    }
    // The API server leaves out the first character, whatever it is.
    let mut characters = path.chars();
    characters.next();
    let steps = characters.as_str();
    let steps = steps.strip_suffix('/').unwrap_or(steps);
    for (index, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            found.add(place, format!("segment[{index}] may not be empty"));
        } else if let Some(problem) = NameRule::Subdomain.problem(step) {
            found.add(place, format!("segment[{index}]: {problem}"));
        }
    }
}

/// The reasons against the URL of a webhook.
fn url_problems(url: &str) -> Vec<&'static str> {
    let (url, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (url, query) = url.split_once('?').unwrap_or((url, ""));
    let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
    let authority = rest.strip_prefix("//").unwrap_or_default();
    let authority = authority.split('/').next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let is_unreadable = |text: &str| text.chars().any(|it| it.is_ascii_control());
    if is_unreadable(url) || host.contains(' ') {
        return vec!["url must be a valid URL: "];
    }
    let reasons = [
        (
            !scheme.eq_ignore_ascii_case("https"),
            "'https' is the only allowed URL scheme",
        ),
        (host.is_empty(), "host must be specified"),
        (
            user.is_some(),
            "user information is not permitted in the URL",
        ),
        (
            !fragment.is_empty(),
            "fragments are not permitted in the URL",
        ),
        (
            !query.is_empty(),
            "query parameters are not permitted in the URL",
        ),
    ];
    let reasons = reasons.into_iter().filter(|(applies, _)| *applies);
    reasons.map(|(_, reason)| reason).collect()
}
