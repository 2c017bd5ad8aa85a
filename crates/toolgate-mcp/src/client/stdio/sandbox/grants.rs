//! Computes the allowed paths from the hidden ones, because Landlock accepts only a
//! list of allowed paths.
//!
//! For example, to hide only `~/.ssh`, it allows every entry of `/` except `/home`, every entry of
//! `/home` except `/home/ada`, and every entry of that except `.ssh`. Entries that are created
//! later in a folder that is split like this are inaccessible.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::{Confinement, places};
use crate::SandboxLevel;

// How many directory entries are examined. Any others stay hidden.
const MAX_ENTRIES_SEEN: usize = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrantAccess {
    /// Allows only the listing of folders.
    Names,
    Read,
    Write,
}

#[derive(Debug, PartialEq)]
pub(super) struct PathGrant {
    pub(super) path: PathBuf,
    pub(super) is_folder: bool,
    pub(super) access: GrantAccess,
}

pub(super) struct NamedPaths {
    pub(super) programs: Vec<PathBuf>,
    pub(super) arguments: Vec<PathBuf>,
}

/// Returns the paths that the server may access.
pub(super) fn build_grants(confinement: &Confinement, named: &NamedPaths) -> Vec<PathGrant> {
    let hidden = HiddenPaths::new(&confinement.hidden);
    let mut builder = GrantBuilder {
        hidden: &hidden,
        left: MAX_ENTRIES_SEEN,
        grants: Vec::new(),
    };
    match confinement.level {
        SandboxLevel::Strict => builder.add_all(&places::basics(), GrantAccess::Read),
        SandboxLevel::Default | SandboxLevel::Off => {
            builder.walk(&hidden, Path::new("/"), true, GrantAccess::Read);
            builder.add_own_places(confinement, &named.arguments);
        }
    }
    builder.add_all(&places::DEVICES, GrantAccess::Write);
    builder.add_all(&named.programs, GrantAccess::Read);
    builder.add_all(&confinement.read, GrantAccess::Read);
    builder.add_all(&confinement.write, GrantAccess::Write);
    builder.grants
}

struct GrantBuilder<'a> {
    hidden: &'a HiddenPaths,
    left: usize,
    grants: Vec<PathGrant>,
}

impl GrantBuilder<'_> {
    fn add_all(&mut self, places: &[impl AsRef<Path>], access: GrantAccess) {
        for place in places {
            self.add_place(place.as_ref(), access);
        }
    }

    /// Allows a named path, even if it is hidden otherwise. Hidden entries inside it stay hidden,
    /// but their names become visible, because otherwise the folder couldn't be listed.
    fn add_place(&mut self, place: &Path, access: GrantAccess) {
        // A missing path can't be allowed.
        let Ok(place) = place.canonicalize() else {
            return;
        };
        if self.hidden.has_hidden_inside(&place) {
            self.grants.push(PathGrant {
                path: place.clone(),
                is_folder: true,
                access: GrantAccess::Names,
            });
        }
        self.walk(self.hidden, &place, place.is_dir(), access);
    }

    /// Allows its own folder, temporary folders, caches, and folders among its arguments, but never
    /// a folder above the home folder.
    fn add_own_places(&mut self, confinement: &Confinement, arguments: &[PathBuf]) {
        let home = confinement.home.as_ref();
        let home = home.and_then(|home| home.canonicalize().ok());
        let is_above_home =
            |place: &Path| home.as_ref().is_some_and(|home| home.starts_with(place));
        let own = std::iter::once(&confinement.cwd).chain(arguments);
        for place in own.filter_map(|place| place.canonicalize().ok()) {
            let access = match place.is_dir() && !places::is_system_path(&place) {
                true => GrantAccess::Write,
                // A file may be the script to run.
                false => GrantAccess::Read,
            };
            if !is_above_home(&place) {
                self.add_place(&place, access);
            }
        }
        let mut hidden_with_home = self.hidden.clone();
        hidden_with_home.paths.extend(home.clone());
        let others = confinement.temporary.iter().chain(&confinement.caches);
        for place in others.filter_map(|place| place.canonicalize().ok()) {
            if home.as_ref() == Some(&place) {
                continue;
            }
            let hidden = match is_above_home(&place) {
                true => &hidden_with_home,
                false => self.hidden,
            };
            self.walk(hidden, &place, place.is_dir(), GrantAccess::Write);
        }
    }

    fn walk(&mut self, hidden: &HiddenPaths, place: &Path, is_folder: bool, access: GrantAccess) {
        if !is_folder || !hidden.has_hidden_inside(place) {
            let path = place.to_owned();
            self.grants.push(PathGrant {
                path,
                is_folder,
                access,
            });
            return;
        }
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            self.left = self.left.saturating_sub(1);
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let path = entry.path();
            // The target of a link has its own rule.
            if self.left > 0 && !kind.is_symlink() && !hidden.covers(&path) {
                self.walk(hidden, &path, kind.is_dir(), access);
            }
        }
    }
}

#[derive(Debug, Clone, Default)]
struct HiddenPaths {
    paths: HashSet<PathBuf>,
    // Hides siblings whose names start with one of these.
    prefixes: Vec<PathBuf>,
    // All ancestors of hidden paths.
    above: HashSet<PathBuf>,
}

impl HiddenPaths {
    fn new(places: &[String]) -> Self {
        let mut hidden = Self::default();
        for place in places {
            hidden.add(place);
        }
        for path in &hidden.paths {
            let above = path.ancestors().skip(1).map(Path::to_owned);
            hidden.above.extend(above);
        }
        hidden
    }

    // Hides the path, and its target if it is a link. A path that doesn't exist yet is hidden
    // when it is created.
    fn add(&mut self, place: &str) {
        let prefix = place.strip_suffix('*');
        let place = Path::new(prefix.unwrap_or(place));
        let path = resolve_folders(place);
        if prefix.is_some() {
            self.prefixes.push(path.clone());
        }
        if path.is_symlink() {
            self.paths.extend(path.canonicalize());
        }
        self.paths.insert(path);
    }

    fn has_hidden_inside(&self, place: &Path) -> bool {
        self.above.contains(place)
    }

    fn covers(&self, path: &Path) -> bool {
        let begins = |prefix: &PathBuf| {
            let (path, prefix) = (path.as_os_str(), prefix.as_os_str());
            path.as_encoded_bytes()
                .starts_with(prefix.as_encoded_bytes())
        };
        self.paths.contains(path) || self.prefixes.iter().any(begins)
    }
}

fn resolve_folders(place: &Path) -> PathBuf {
    let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
        return place.to_owned();
    };
    match parent.canonicalize() {
        Ok(parent) => parent.join(name),
        Err(_) => resolve_folders(parent).join(name),
    }
}
