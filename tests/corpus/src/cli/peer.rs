//! The commands about other generators.

use super::{Error, KopiumArgs, pronounce, say, travel};
use crate::corpus::{Corpus, DefinitionFile};
use crate::definition;
use crate::kopium::{self, Harvest};
use crate::roundtrip::{self, Case};
use crate::scratch::{self, Bond, Scratch, scratch_root};

pub(super) fn kopium(arguments: &KopiumArgs) -> Result<(), Error> {
    let corpus = Corpus::locate()?;
    let root = arguments
        .root
        .clone()
        .unwrap_or_else(|| scratch_root().join("kopium/install"));
    kopium::install(&root)?;
    let files = corpus.files(arguments.selection.part());
    let harvest = kopium::harvest(&root, &files)?;
    for (stem, complaint) in &harvest.failures {
        say(format_args!("{stem}: {complaint}"))?;
    }
    say(format_args!(
        "kopium {}: {} of {} files, {} without a root type, {} lines, {:.2} CPU s in {} processes",
        kopium::VERSION,
        harvest.modules.len(),
        files.len(),
        harvest.rootless.len(),
        scratch::lines(&harvest.modules),
        harvest.cost.cpu.as_secs_f64(),
        files.len(),
    ))?;
    if let Some(judge) = arguments.judge {
        let scratch = Scratch::create("check", &kopium::SUPPLY)?;
        scratch.warm(judge)?;
        let verdict = scratch.judge(judge, &harvest.modules, Bond::Independent)?;
        pronounce(&verdict, harvest.modules.len())?;
    }
    if arguments.roundtrip {
        let cases = cases(&corpus, &files, &harvest)?;
        travel(&kopium::SUPPLY, &harvest.modules, cases)?;
    }
    Ok(())
}

fn cases(
    corpus: &Corpus,
    files: &[&DefinitionFile],
    harvest: &Harvest,
) -> Result<Vec<Case>, Error> {
    let mut cases = Vec::new();
    for file in files {
        let name = kopium::module_name(file);
        let Some(module) = harvest.modules.iter().find(|module| module.name == name) else {
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
            cases.push(Case {
                stem: file.stem.clone(),
                objects: roundtrip::objects(corpus, file, &version)?,
                version,
                path: format!("{name}::{root}"),
            });
        }
    }
    Ok(cases)
}
