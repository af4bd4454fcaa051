//! The Python of the pages registers handlers in Kopf itself.

use kopf_tests::{PythonKopf, TestResult};

use super::blocks;

/// Runs a block with Kopf, and prints the handlers that it registers.
const REGISTERED: &str = "
import sys
import kopf
exec(compile(sys.argv[1], 'page', 'exec'), {'kopf': kopf})
registry = kopf.get_default_registry()
for handler in registry._changing.get_all_handlers():
    print(handler.id, handler.reason, handler.retries)
";

#[tokio::test]
async fn the_decorators_of_the_page_are_accepted_by_kopf() -> TestResult {
    let page = "docs/kopf.md";
    let blocks = blocks::of_page(page.as_ref());
    let python: Vec<_> = blocks.iter().filter(|it| it.language == "python").collect();
    let [block] = python[..] else {
        panic!("{page} shows one function of Python");
    };
    let kopf = PythonKopf::obtain().await?;
    let registered = kopf.evaluate(REGISTERED, &block.text)?;
    assert_eq!(registered.trim(), "resize/spec.size update 5");
    Ok(())
}
