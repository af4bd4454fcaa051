//! The command `kopium`: the same files through kopium.

use super::{Error, KopiumArgs, print, print_report, run_roundtrip};
use crate::corpus::{Corpus, DefinitionFile};
use crate::definition;
use crate::kopium::{self, KopiumOutput};
use crate::roundtrip::{self, RoundtripCase};
use crate::scratch_crate::{self, ModuleCoupling, ScratchCrate, scratch_root};

pub(super) fn kopium(arguments: &KopiumArgs) -> Result<(), Error> {
    let corpus = arguments.selection.corpus.open()?;
    let root = arguments
        .root
        .clone()
        .unwrap_or_else(|| scratch_root().join("kopium/install"));
    kopium::install(&root)?;
    let files = corpus.files(arguments.selection.subset());
    let output = kopium::generate(&root, &files)?;
    for (stem, error) in &output.failures {
        print(format_args!("{stem}: {error}"))?;
    }
    print(format_args!(
        "kopium {}: {} of {} files, {} without a root type, {} lines, {:.2} CPU s in {} processes",
        kopium::VERSION,
        output.modules.len(),
        files.len(),
        output.rootless.len(),
        scratch_crate::lines(&output.modules),
        output.cost.cpu.as_secs_f64(),
        files.len(),
    ))?;
    if let Some(cargo) = arguments.cargo {
        let scratch = ScratchCrate::create("check", &kopium::DEPENDENCIES)?;
        scratch.compile_dependencies(cargo)?;
        let report = scratch.check_modules(cargo, &output.modules, ModuleCoupling::Independent)?;
        print_report(&report, output.modules.len())?;
    }
    if arguments.roundtrip {
        let cases = cases(&corpus, &files, &output)?;
        run_roundtrip(&kopium::DEPENDENCIES, &output.modules, cases)?;
    }
    Ok(())
}

fn cases(
    corpus: &Corpus,
    files: &[&DefinitionFile],
    output: &KopiumOutput,
) -> Result<Vec<RoundtripCase>, Error> {
    let mut cases = Vec::new();
    for file in files {
        let name = kopium::module_name(file);
        let Some(module) = output.modules.iter().find(|module| module.name == name) else {
            continue;
        };
        let text = module
            .files
            .first()
            .map(|file| file.text.as_str())
            .unwrap_or_default();
        let versions = definition::versions(&file.definition()?);
        let version = versions
            .into_iter()
            .find(|version| text.contains(&format!("version = \"{}\"", version.name)));
        if let (Some(root), Some(version)) = (kopium::root(text), version) {
            cases.push(RoundtripCase {
                stem: file.stem.clone(),
                objects: roundtrip::objects(corpus, file, &version)?,
                version,
                path: format!("{name}::{root}"),
            });
        }
    }
    Ok(cases)
}
