//! Downloads the official binaries of a release into the cache.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use super::release::{KubernetesVersion, PinnedRelease};
use super::{Binaries, Environment, FoundBinaries, print_status};
use crate::download::{self, DownloadProgress, Downloader, Platform, ReleaseBinary};

/// The interval between progress lines.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// Downloads all binaries of the requested minor; or, if an earlier source has all but a controller
/// manager, the one that belongs to it. None if that is not possible: a line says why.
pub(super) fn fetch(
    environment: &Environment,
    earlier: Option<&FoundBinaries>,
) -> Option<(Binaries, KubernetesVersion)> {
    let mirrors = environment.mirrors.clone()?;
    if !Platform::of_this_machine().has(ReleaseBinary::KubeApiserver) {
        return None;
    }
    let last_line = Cell::new(Instant::now());
    let downloader = Downloader::new(mirrors, |progress| {
        let is_frequent = matches!(progress, DownloadProgress::Advanced { .. });
        if !is_frequent || last_line.get().elapsed() > PROGRESS_EVERY {
            last_line.set(Instant::now());
            print_status(&progress.to_string());
        }
    });
    let fetched = match earlier {
        Some(earlier) => {
            let version = earlier.version?;
            let folder = environment.folders.downloaded(version);
            manager_for(&downloader, earlier, version, &folder).map(|it| (it, version))
        }
        None => {
            let release = PinnedRelease::of(&environment.kubernetes).ok()?;
            let folder = environment.folders.downloaded(release.version);
            all(&downloader, &release, &folder).map(|it| (it, release.version))
        }
    };
    fetched
        .inspect_err(|error| print_status(&format!("nothing is downloaded: {error}")))
        .ok()
}

fn all(
    downloader: &Downloader<'_>,
    release: &PinnedRelease,
    folder: &Path,
) -> Result<Binaries, download::Error> {
    let version = release.version.to_string();
    let fetch = |binary| downloader.fetch(binary, &version, folder);
    Ok(Binaries {
        etcd: downloader.fetch(ReleaseBinary::Etcd, release.etcd, folder)?,
        kube_apiserver: fetch(ReleaseBinary::KubeApiserver)?,
        kube_controller_manager: Some(fetch(ReleaseBinary::KubeControllerManager)?),
    })
}

fn manager_for(
    downloader: &Downloader<'_>,
    earlier: &FoundBinaries,
    version: KubernetesVersion,
    folder: &Path,
) -> Result<Binaries, download::Error> {
    let manager = ReleaseBinary::KubeControllerManager;
    Ok(Binaries {
        kube_controller_manager: Some(downloader.fetch(manager, &version.to_string(), folder)?),
        ..earlier.binaries.clone()
    })
}
