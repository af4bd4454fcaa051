//! Tests of archives.

use std::fs;

use tar::{Builder, Header};

use super::*;

fn header(path: &str, kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    // `Header::set_path` refuses the hostile paths that these tests are about.
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o755);
    header.set_cksum();
    header
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    // A file name and a comment, as many tools write them.
    let mut file = vec![0x1f, 0x8b, 8, 0b1_1000, 0, 0, 0, 0, 0, 3];
    file.extend(b"name\0comment\0");
    file.extend(miniz_oxide::deflate::compress_to_vec(bytes, 1));
    file.extend([0; 8]);
    file
}

/// An archive of regular files.
pub(in super::super) fn tar_gz(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (path, content) in files {
        let header = header(path, EntryType::Regular, content.len() as u64);
        builder.append(&header, *content).expect("in memory");
    }
    gzip(&builder.into_inner().expect("in memory"))
}

fn extract_from(archive: &[u8]) -> (tempfile::TempDir, Result<Vec<u8>, String>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (path, target) = (folder.path().join("a.tar.gz"), folder.path().join("out"));
    fs::write(&path, archive).expect("written");
    let extracted = extract(&path, "dir/etcd", &target, 1_000_000)
        .map(|()| fs::read(&target).expect("extracted"))
        .map_err(|error| error.to_string());
    (folder, extracted)
}

#[test]
fn only_the_named_entry_is_written() {
    let archive = tar_gz(&[
        ("../outside", b"evil"),
        ("dir/etcdctl", b"other"),
        ("dir/etcd", b"etcd"),
    ]);

    let (folder, extracted) = extract_from(&archive);

    assert_eq!(extracted, Ok(b"etcd".to_vec()));
    let parent = folder.path().parent().expect("a parent");
    assert!(!parent.join("outside").exists());
    assert!(!folder.path().join("outside").exists());
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
}

#[test]
fn an_archive_without_the_entry_or_with_a_link_is_refused() {
    let (_, extracted) = extract_from(&tar_gz(&[("dir/other", b"x"), ("x/dir/etcd", b"x")]));
    let message = extracted.expect_err("no such entry");
    assert!(message.contains("it has no dir/etcd"), "{message}");

    let mut builder = Builder::new(Vec::new());
    let link = header("dir/etcd", EntryType::Symlink, 0);
    builder.append(&link, &b""[..]).expect("in memory");
    let archive = gzip(&builder.into_inner().expect("in memory"));
    let (_, extracted) = extract_from(&archive);
    let message = extracted.expect_err("a link");
    assert!(message.contains("not a regular file"), "{message}");
}

#[test]
fn a_damaged_or_endless_archive_is_refused() {
    let content: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    let whole = tar_gz(&[("dir/etcd", &content)]);
    let (_, extracted) = extract_from(&whole);
    assert!(extracted == Ok(content), "the whole archive");

    let (_, extracted) = extract_from(&whole[..whole.len() / 2]);
    assert!(extracted.is_err(), "a half");
    let (_, extracted) = extract_from(b"no gzip file at all");
    let message = extracted.expect_err("no gzip file");
    assert!(message.contains("not a gzip file"), "{message}");
    let (_, extracted) = extract_from(&tar_gz(&[("dir/etcd", &vec![0; 1_000_001])]));
    let message = extracted.expect_err("too large");
    assert!(message.contains("larger than 1000000 bytes"), "{message}");
}
