//! The crates on which a generated crate depends.

/// The runtime.
pub const RUNTIME: &str = "kopf-runtime";

/// A dependency of every generated crate, beside the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrateDependency {
    /// The name of the package.
    pub package: &'static str,
    /// Its version and features, as a TOML value.
    pub source: &'static str,
}

/// The dependencies of every generated crate, beside the runtime.
pub const DEPENDENCIES: &[CrateDependency] = &[
    CrateDependency {
        package: "k8s-openapi",
        source: r#"{ version = "0.29", default-features = false, features = ["latest"] }"#,
    },
    CrateDependency {
        package: "kube",
        source: r#"{ version = "5.0", default-features = false, features = ["client"] }"#,
    },
    CrateDependency {
        package: "mimalloc",
        // Huge pages would double the memory.
        source: r#"{ version = "0.1.52", default-features = false, features = ["no_thp"] }"#,
    },
    CrateDependency {
        package: "serde",
        source: r#"{ version = "1", features = ["derive"] }"#,
    },
    CrateDependency {
        package: "serde_json",
        source: r#""1""#,
    },
];

/// The crates that come with the compiler.
const STANDARD: [&str; 3] = ["alloc", "core", "std"];

/// Whether a generated crate sees a crate of this name, which a module of the same name would hide.
#[must_use]
pub fn has_crate(name: &str) -> bool {
    let packages = DEPENDENCIES.iter().map(|it| it.package).chain([RUNTIME]);
    let is_named = |package: &str| package.replace('-', "_") == name;
    STANDARD.contains(&name) || packages.into_iter().any(is_named)
}
