//! Test vectors made by Python's `json` module.

use proptest::prelude::*;
use serde_json::Value;

use super::to_ascii;
use crate::object::diff::tests::any_json;

const VECTORS: &[(&str, &str)] = &[
    (
        r#"{"b":1,"a":[true,false,null],"c":{}}"#,
        r#"{"b":1,"a":[true,false,null],"c":{}}"#,
    ),
    (
        r#""h\u00e9llo \u2028 \ud83d\ude00 \u007f \u0001 \b\f\n\r\t / \\ \"""#,
        r#""h\u00e9llo \u2028 \ud83d\ude00 \u007f \u0001 \b\f\n\r\t / \\ \"""#,
    ),
    (
        r#"[1.0,1.5,-0.0,0.1,1e16,1e15,123456789012345680.0,0.0001,0.00001,1e-7,1.5e300,5e-324,-2.5e-10,100.0]"#,
        r#"[1.0,1.5,-0.0,0.1,1e+16,1000000000000000.0,1.2345678901234568e+17,0.0001,1e-05,1e-07,1.5e+300,5e-324,-2.5e-10,100.0]"#,
    ),
    (
        r#"[0,-1,18446744073709551615,-9223372036854775808]"#,
        r#"[0,-1,18446744073709551615,-9223372036854775808]"#,
    ),
    (
        r#"{"\u043a\u043b\u044e\u0447":"\u65e5\u672c"}"#,
        r#"{"\u043a\u043b\u044e\u0447":"\u65e5\u672c"}"#,
    ),
];

#[test]
fn text_is_what_python_writes() {
    for (input, expected) in VECTORS {
        let value: Value = serde_json::from_str(input).expect("valid JSON");
        assert_eq!(to_ascii(&value), *expected);
    }
}

proptest! {
    #[test]
    fn text_is_ascii_and_reads_back(value in any_json()) {
        let text = to_ascii(&value);
        prop_assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        prop_assert_eq!(serde_json::from_str::<Value>(&text).expect("valid JSON"), value);
    }

    #[test]
    fn floats_read_back(float in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL) {
        let text = to_ascii(&Value::from(float));
        prop_assert_eq!(text.parse::<f64>().expect("a float"), float);
    }
}
