//! Each shape that definitions of real projects have is in a definition of ours.

#[path = "shapes/schemas.rs"]
mod schemas;
#[path = "shapes/table.rs"]
mod table;

use kopf_corpus::corpus::{Corpus, CorpusError, Subset, repository};
use kopf_corpus::definition;

use schemas::ShapedDefinition;
use table::{OLD_SHAPES, SHAPES, Shape};

fn read(corpus: Result<Corpus, CorpusError>) -> Vec<ShapedDefinition> {
    let corpus = corpus.expect("the folder is there");
    let files = corpus.files(Subset::All);
    let read = files.iter().map(|file| ShapedDefinition {
        stem: file.stem.clone(),
        text: file.read().expect("a definition is text"),
        json: file.definition().expect("a definition is YAML"),
    });
    read.collect()
}

/// The shapes that none of the definitions has.
fn missing(shapes: &[Shape], definitions: &[ShapedDefinition]) -> Vec<&'static str> {
    shapes
        .iter()
        .filter(|(_, has)| !definitions.iter().any(has))
        .map(|(name, _)| *name)
        .collect()
}

#[test]
fn every_shape_has_a_definition() {
    let definitions = read(Corpus::own());
    assert_eq!(missing(SHAPES, &definitions), Vec::<&str>::new());
}

#[test]
fn every_shape_of_old_definitions_has_a_definition() {
    let old = Corpus::open(&repository().join("tests/corpus/v1beta1"));
    assert_eq!(missing(OLD_SHAPES, &read(old)), Vec::<&str>::new());
}

#[test]
fn a_definition_without_shapes_has_none() {
    let text = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n";
    let json = definition::documents("bare.yaml", text).remove(0);
    let bare = ShapedDefinition {
        stem: "bare".to_owned(),
        text: text.to_owned(),
        json,
    };
    assert_eq!(missing(SHAPES, &[bare]).len(), SHAPES.len());
}

#[test]
fn every_definition_opens_with_what_it_shows() {
    for definition in read(Corpus::own())
        .into_iter()
        .chain(read(Corpus::not_structural()))
    {
        let first = definition.text.lines().next().unwrap_or_default();
        assert!(
            first.starts_with("# ") && first.ends_with('.'),
            "{}: {first}",
            definition.stem
        );
    }
}
