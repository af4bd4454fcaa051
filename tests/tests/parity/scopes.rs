//! Namespace patterns match the same names as in Kopf.

use kopf_runtime::NamespacePattern;
use kopf_tests::{PythonKopf, TestResult};
use serde_json::json;

const MATCH: &str = "
import json, sys
from kopf._cogs.structs.references import match_namespace
patterns, names = json.loads(sys.argv[1])
print(json.dumps([[match_namespace(name, pattern) for name in names] for pattern in patterns]))
";

#[tokio::test]
async fn namespace_patterns_match_the_same_names() -> TestResult {
    let globs = [
        "", "a", "b", "a*", "*b", "?", "a?", "[ab]", "[!a]b", "[a-", "*a*", "!a", "!*b", "!!a", "!",
    ];
    let mut patterns: Vec<String> = globs.map(str::to_owned).to_vec();
    for first in globs {
        for second in globs {
            patterns.push(format!("{first},{second}"));
            patterns.extend(globs.map(|third| format!("{first}, {second} ,{third}")));
        }
    }
    let names = ["", "a", "b", "ab", "ba", "bb", "aab", "[a-", "c"];
    let kopf = PythonKopf::obtain().await?;
    let theirs = kopf.evaluate(MATCH, &json!([patterns, names]).to_string())?;
    let theirs: Vec<Vec<bool>> = serde_json::from_str(&theirs)?;
    assert_eq!(theirs.len(), patterns.len());
    for (pattern, theirs) in patterns.iter().zip(theirs) {
        let ours = NamespacePattern::new(pattern);
        let ours: Vec<bool> = names.iter().map(|name| ours.matches(name)).collect();
        assert_eq!(ours, theirs, "{pattern:?} on {names:?}");
    }
    Ok(())
}

const MATCH_EXPRESSION: &str = "
import json, re, sys
from kopf._cogs.structs.references import match_namespace
patterns, names = json.loads(sys.argv[1])
print(json.dumps([[match_namespace(name, re.compile(it)) for name in names] for it in patterns]))
";

#[tokio::test]
async fn regular_expressions_match_the_same_names() -> TestResult {
    let expressions = [
        "", "a", "a|ab", "a*", "(a|b)+", "[^a]b", "a.b?", "^a$", "b{2}", "(?i)A", r"\w", r"a\d*",
    ];
    let names = ["", "a", "b", "ab", "ba", "bb", "aab", "a-b", "a1"];
    let kopf = PythonKopf::obtain().await?;
    let argument = json!([expressions, names]).to_string();
    let theirs = kopf.evaluate(MATCH_EXPRESSION, &argument)?;
    let theirs: Vec<Vec<bool>> = serde_json::from_str(&theirs)?;
    assert_eq!(theirs.len(), expressions.len());
    for (expression, theirs) in expressions.iter().zip(theirs) {
        let ours = NamespacePattern::regex(expression)?;
        let ours: Vec<bool> = names.iter().map(|name| ours.matches(name)).collect();
        assert_eq!(ours, theirs, "{expression:?} on {names:?}");
    }
    Ok(())
}
