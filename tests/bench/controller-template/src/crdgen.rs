//! Prints the CustomResourceDefinition.

use kube::CustomResourceExt as _;

fn main() -> anyhow::Result<()> {
    print!("{}", serde_yaml::to_string(&controller::Exhibit::crd())?);
    Ok(())
}
