//! From what is closed to what is open: the kernel takes only a list of what a process may reach.
//!
//! Everything but `~/.ssh` is: all of `/` but `/home`, all of `/home` but `/home/ada`, all of that
//! but `.ssh`. Only folders on the way to something hidden are taken apart, as they are when the
//! server starts: what appears in one of them later is closed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::{Confinement, places};
use crate::SandboxLevel;

/// So many entries of folders are looked at; what comes after is closed.
const MOST: usize = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Only to list folders.
    Names,
    Read,
    Write,
}

/// Something that is open, with everything in it.
#[derive(Debug, PartialEq)]
pub(super) struct Grant {
    pub(super) path: PathBuf,
    pub(super) is_folder: bool,
    pub(super) access: Access,
}

/// What the command line of the server names.
pub(super) struct Named {
    pub(super) programs: Vec<PathBuf>,
    /// Files and folders, there or not.
    pub(super) arguments: Vec<PathBuf>,
}

pub(super) fn grants(confinement: &Confinement, named: &Named) -> Vec<Grant> {
    let hidden = Hidden::new(&confinement.hidden);
    let mut open = Open {
        hidden: &hidden,
        left: MOST,
        grants: Vec::new(),
    };
    match confinement.level {
        SandboxLevel::Strict => open.all(&places::BASICS, Access::Read),
        SandboxLevel::Default | SandboxLevel::Off => {
            open.walk(Path::new("/"), true, Access::Read);
            open.own_places(confinement, &named.arguments);
        }
    }
    open.all(&places::DEVICES, Access::Write);
    open.all(&named.programs, Access::Read);
    open.all(&confinement.read, Access::Read);
    open.all(&confinement.write, Access::Write);
    open.grants
}

struct Open<'a> {
    hidden: &'a Hidden,
    left: usize,
    grants: Vec<Grant>,
}

impl Open<'_> {
    fn all(&mut self, places: &[impl AsRef<Path>], access: Access) {
        for place in places {
            self.place(place.as_ref(), access);
        }
    }

    /// What is named may be hidden elsewhere: naming it opens it. What is hidden inside it stays
    /// hidden, except for the names in there: without them the folder couldn't be listed at all.
    fn place(&mut self, place: &Path, access: Access) {
        // What isn't there can't be opened.
        let Ok(place) = place.canonicalize() else {
            return;
        };
        if self.hidden.is_below(&place) {
            self.grants.push(Grant {
                path: place.clone(),
                is_folder: true,
                access: Access::Names,
            });
        }
        self.walk(&place, place.is_dir(), access);
    }

    /// Its folder, temporary folders, caches, and the folders that it is told to work on; never a
    /// folder that is everybody's.
    fn own_places(&mut self, confinement: &Confinement, arguments: &[PathBuf]) {
        let home = confinement.home.as_ref();
        let home = home.and_then(|home| home.canonicalize().ok());
        let is_above_home =
            |place: &Path| home.as_ref().is_some_and(|home| home.starts_with(place));
        let own = std::iter::once(&confinement.cwd).chain(arguments);
        for place in own.filter_map(|place| place.canonicalize().ok()) {
            let access = match place.is_dir() && !places::is_of_system(&place) {
                true => Access::Write,
                // A file may be the script that is run.
                false => Access::Read,
            };
            if !is_above_home(&place) {
                self.place(&place, access);
            }
        }
        let mut and_home = self.hidden.clone();
        and_home.paths.extend(home.clone());
        let others = confinement.temporary.iter().chain(&confinement.caches);
        for place in others.filter_map(|place| place.canonicalize().ok()) {
            if home.as_ref() == Some(&place) {
                continue;
            }
            let mut open = Open {
                hidden: match is_above_home(&place) {
                    true => &and_home,
                    false => self.hidden,
                },
                left: self.left,
                grants: std::mem::take(&mut self.grants),
            };
            open.walk(&place, place.is_dir(), Access::Write);
            (self.left, self.grants) = (open.left, open.grants);
        }
    }

    fn walk(&mut self, place: &Path, is_folder: bool, access: Access) {
        if !is_folder || !self.hidden.is_below(place) {
            let path = place.to_owned();
            self.grants.push(Grant {
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
            // A link leads to what has a place of its own.
            if self.left > 0 && !kind.is_symlink() && !self.hidden.covers(&path) {
                self.walk(&path, kind.is_dir(), access);
            }
        }
    }
}

/// What is closed: files, and folders with everything in them.
#[derive(Debug, Clone, Default)]
struct Hidden {
    paths: HashSet<PathBuf>,
    /// Everything beside one of these whose name begins with its name is closed as well.
    beginnings: Vec<PathBuf>,
    /// All folders above something that is closed.
    above: HashSet<PathBuf>,
}

impl Hidden {
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

    /// Where it is, and where it leads to if it is a link. What isn't there yet stays closed when
    /// it comes.
    fn add(&mut self, place: &str) {
        let beginning = place.strip_suffix('*');
        let place = Path::new(beginning.unwrap_or(place));
        let path = real(place);
        if beginning.is_some() {
            self.beginnings.push(path.clone());
        }
        if path.is_symlink() {
            self.paths.extend(path.canonicalize());
        }
        self.paths.insert(path);
    }

    /// True if something in this folder is closed.
    fn is_below(&self, place: &Path) -> bool {
        self.above.contains(place)
    }

    fn covers(&self, path: &Path) -> bool {
        let begins = |beginning: &PathBuf| {
            let (path, beginning) = (path.as_os_str(), beginning.as_os_str());
            path.as_encoded_bytes()
                .starts_with(beginning.as_encoded_bytes())
        };
        self.paths.contains(path) || self.beginnings.iter().any(begins)
    }
}

/// The path without links in its folders, as far as these are there.
fn real(place: &Path) -> PathBuf {
    let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
        return place.to_owned();
    };
    match parent.canonicalize() {
        Ok(parent) => parent.join(name),
        Err(_) => real(parent).join(name),
    }
}
