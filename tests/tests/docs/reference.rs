//! The reference of the manifest, of the commands and of the messages follows from the code.

use std::fmt::Write as _;
use std::process::Command;

use kopf_gen::diagnostic::Code;
use kopf_gen::load::manifest;
use kopf_tests::{TestFailure, TestResult, workspace};
use serde_json::Value;

use super::generated_page::{cell, compare};

/// The sections of the manifest in the order of the page: definition, heading, place.
const SECTIONS: [(&str, &str, &str); 30] = [
    ("OperatorSection", "The operator", "`operator`"),
    (
        "HookSection",
        "Handlers of the operator",
        "an item of `operator.handlers`",
    ),
    ("PeeringOptions", "Peering", "`operator.peering`"),
    (
        "LeaderElectionSection",
        "Leader election",
        "`operator.leader_election`",
    ),
    ("AdmissionSection", "Admission", "`operator.admission`"),
    ("DeploySection", "Deployment", "`operator.deploy`"),
    (
        "SettingsSection",
        "Settings",
        "`operator.settings`; [settings](settings.md) has the defaults",
    ),
    ("ResourceSection", "Resources", "an item of `resources`"),
    ("KindSelector", "Selections", "`select` of a resource"),
    (
        "TypesSection",
        "Types",
        "`types` of a resource or of the operator",
    ),
    (
        "HandlerSection",
        "Handlers",
        "an item of `handlers` of a resource",
    ),
    (
        "IndexSection",
        "Indices",
        "an item of `indices` of a resource",
    ),
    (
        "WebhookSection",
        "Webhooks",
        "an item of `admission` of a resource",
    ),
    (
        "ChildSection",
        "Children",
        "an item of `children` of a resource",
    ),
    ("UseSection", "Uses", "an item of `uses` of a resource"),
    ("Trigger", "Triggers", "`on` of a handler"),
    ("ErrorMode", "Error modes", "`errors` of a handler"),
    ("Tracking", "Tracking", "`track` of a resource"),
    ("ChildUpdate", "Updates of children", "`update` of a child"),
    ("KindScope", "Scopes of children", "`scope` of a child"),
    ("Operation", "Operations", "`operations` of a webhook"),
    ("Ties", "Ties", "`ties` of a peering"),
    (
        "ConfigurationOwner",
        "Webhook configurations",
        "`operator.admission.configuration`",
    ),
    (
        "BuiltinTypeUse",
        "Types of k8s-openapi",
        "an option of `types`",
    ),
    (
        "Filters",
        "Filters of labels and annotations",
        "`labels`, `annotations`",
    ),
    ("ValueFilter", "Filters of values", "`value`, `old`, `new`"),
    (
        "TextFilter",
        "Filters of texts",
        "the value of a label or an annotation",
    ),
    ("When", "Conditions", "`when`"),
    (
        "Duration",
        "Durations",
        "`interval`, `timeout`, `backoff` and the like",
    ),
    ("InitialDelay", "Initial delays", "`initial_delay`"),
];

/// The name at the end of a reference.
fn referred(value: &Value) -> Option<&str> {
    value["$ref"].as_str()?.strip_prefix("#/$defs/")
}

/// What a property can be, in a few words.
fn kind(value: &Value, definitions: &Value) -> String {
    if let Some(name) = referred(value) {
        return match SECTIONS.iter().find(|(section, ..)| *section == name) {
            Some((_, heading, _)) => format!("[{}](#{})", heading.to_lowercase(), anchor(heading)),
            None => kind(&definitions[name], definitions),
        };
    }
    if let Some(word) = value["const"].as_str() {
        return format!("`{word}`");
    }
    for key in ["anyOf", "oneOf"] {
        let Some(choices) = value[key].as_array() else {
            continue;
        };
        let mut words = Vec::new();
        for choice in choices.iter().filter(|it| it["type"] != "null") {
            let word = kind(choice, definitions);
            if !words.contains(&word) {
                words.push(word);
            }
        }
        return words.join(" or ");
    }
    let types: Vec<&str> = match &value["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(some) => some.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let words = types
        .iter()
        .filter(|it| **it != "null")
        .map(|it| match *it {
            "array" => format!("list of {}", kind(&value["items"], definitions)),
            "object" => "mapping".to_owned(),
            "boolean" => "`true` or `false`".to_owned(),
            "string" => "text".to_owned(),
            other => other.to_owned(),
        });
    match words.collect::<Vec<_>>() {
        none if none.is_empty() => "any value".to_owned(),
        words => words.join(" or "),
    }
}

fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

/// The description of a definition or a property, with what its choices mean.
fn description(value: &Value) -> String {
    value["description"].as_str().unwrap_or_default().to_owned()
}

/// A table of the properties of an object, or of the choices of a word.
fn table(definition: &Value, definitions: &Value) -> String {
    let mut text = String::new();
    if let Some(properties) = definition["properties"].as_object() {
        text.push_str("| key | value | |\n| --- | --- | --- |\n");
        let required = definition["required"].as_array();
        for (key, value) in properties {
            let is_required = required.is_some_and(|it| it.contains(&Value::from(key.as_str())));
            let note = if is_required { " Required." } else { "" };
            let (kind, about) = (cell(&kind(value, definitions)), cell(&description(value)));
            let _ = writeln!(text, "| `{key}` | {kind} | {about}{note} |");
        }
        return text;
    }
    let words = definition["enum"].as_array().into_iter().flatten();
    let words: Vec<String> = words
        .filter_map(|it| it.as_str().map(|it| format!("`{it}`")))
        .collect();
    if !words.is_empty() {
        return format!("One of {}.\n", words.join(", "));
    }
    text.push_str("| value | |\n| --- | --- |\n");
    let choices = ["oneOf", "anyOf"]
        .iter()
        .find_map(|key| definition[*key].as_array());
    let whole = vec![definition.clone()];
    for choice in choices.unwrap_or(&whole) {
        let keys = choice["properties"].as_object();
        let words = match keys {
            Some(keys) => {
                let inside = keys.iter().map(|(key, value)| {
                    let value = if value["not"].is_null() {
                        kind(value, definitions)
                    } else {
                        "any value".to_owned()
                    };
                    format!("`{key}: …`, {value}")
                });
                inside.collect::<Vec<_>>().join("; ")
            }
            None => kind(choice, definitions),
        };
        let about = if choices.is_some() {
            description(choice)
        } else {
            String::new()
        };
        let _ = writeln!(text, "| {} | {} |", cell(&words), cell(&about));
    }
    text
}

#[test]
fn the_page_of_the_manifest_follows_from_its_schema() {
    let schema = serde_json::to_value(manifest::schema()).expect("JSON");
    let definitions = &schema["$defs"];
    let mut text = "# The manifest, key by key\n\n\
        All keys of `kopf.yaml`, from the JSON Schema that `kopf-gen schema` prints. \
        [Commands](commands.md) says how editors use the schema; the guides have examples.\n\n"
        .to_owned();
    text.push_str(&table(&schema, definitions));
    for (name, heading, place) in SECTIONS {
        let definition = &definitions[name];
        if definition.is_null() {
            continue;
        }
        let about = cell(&description(definition));
        let _ = write!(text, "\n## {heading}\n\nPlace: {place}.");
        if !about.is_empty() {
            let _ = write!(text, " {about}");
        }
        let _ = write!(text, "\n\n{}", table(definition, definitions));
    }
    compare("manifest.md", &text);
}

#[test]
fn every_section_of_the_manifest_is_on_its_page() {
    let schema = serde_json::to_value(manifest::schema()).expect("JSON");
    let definitions = schema["$defs"].as_object().expect("definitions");
    let settings = &schema["$defs"]["SettingsSection"].to_string();
    let missing: Vec<&String> = definitions
        .iter()
        .filter(|(name, it)| {
            it["properties"].is_object() && !settings.contains(&format!("/{name}\""))
        })
        .map(|(name, _)| name)
        .filter(|name| !SECTIONS.iter().any(|(section, ..)| section == name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_page_of_messages_has_every_code() {
    let mut text = "# Messages of kopf-gen\n\n\
        Every message has a code. `kopf-gen explain KG0610` prints the same text as this page. \
        [Commands](commands.md#messages) says what errors, warnings, notes and infos are.\n"
        .to_owned();
    for code in Code::ALL {
        let _ = write!(text, "\n## {}\n\n", code.id());
        let lines = code.explanation().lines().map(str::trim);
        let text_lines = lines.map(|line| line.strip_prefix(' ').unwrap_or(line));
        text.push_str(text_lines.collect::<Vec<_>>().join("\n").trim());
        text.push('\n');
    }
    compare("messages.md", &text);
}

/// The help of a command, as it is printed without a terminal.
fn help(program: &std::path::Path, command: &[&str]) -> Result<String, TestFailure> {
    let mut run = Command::new(program);
    run.args(command).arg("--help").env_clear();
    let output = run.output()?;
    assert!(output.status.success(), "{command:?}");
    Ok(String::from_utf8(output.stdout)?)
}

/// The commands that a help lists.
fn listed(help: &str) -> Vec<&str> {
    let section = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.is_empty());
    let named = lines.filter_map(|line| line.strip_prefix("  ").filter(|it| !it.starts_with(' ')));
    let words = named.filter_map(|line| line.split_whitespace().next());
    words.filter(|word| *word != "help").collect()
}

/// The help without the options of all commands, which the first section has.
fn own_part(help: &str) -> String {
    let own = help.split("\nFor all commands:\n").next().unwrap_or(help);
    own.lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
        .trim()
        .to_owned()
}

/// The help of a command and of all below it.
fn sections(program: &std::path::Path, name: &str, path: &[&str], text: &mut String) -> TestResult {
    let found = help(program, path)?;
    let words: Vec<&str> = [name].into_iter().chain(path.iter().copied()).collect();
    let shown = if path.is_empty() {
        found
            .lines()
            .map(str::trim_end)
            .collect::<Vec<_>>()
            .join("\n")
            .trim()
            .to_owned()
    } else {
        own_part(&found)
    };
    let _ = write!(text, "\n## {}\n\n```text\n{shown}\n```\n", words.join(" "));
    for command in listed(&found) {
        let path: Vec<&str> = path.iter().copied().chain([command]).collect();
        sections(program, name, &path, text)?;
    }
    Ok(())
}

#[test]
fn the_page_of_command_lines_has_every_command_and_option() -> TestResult {
    let mut text = "# Command lines\n\n\
        What `--help` prints: first the commands of kopf-gen, then those that every operator has. \
        [The commands of kopf-gen](commands.md) and [the operator as a process](operator.md#the-command-line) explain them.\n"
        .to_owned();
    sections(
        &workspace::build_program("kopf-gen")?,
        "kopf-gen",
        &[],
        &mut text,
    )?;
    let operator = std::path::Path::new(env!("CARGO_BIN_EXE_health-operator"));
    let mut own = String::new();
    sections(operator, "my-operator", &[], &mut own)?;
    text.push_str(&own.replace("health-operator", "my-operator"));
    compare("command-line.md", &text);
    Ok(())
}
