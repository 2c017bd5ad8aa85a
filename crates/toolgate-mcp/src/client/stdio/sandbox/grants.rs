//! From what is closed to what is open: the kernel takes only a list of what a process may reach.
//!
//! Everything but `~/.ssh` is: all of `/` but `/home`, all of `/home` but `/home/ada`, all of that but `.ssh`. Only folders on
//! the way to something hidden are taken apart, as they are when the server starts: what appears in one of them later is closed.

use std::fs::FileType;
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
    /// And read.
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
    /// What is started.
    pub(super) programs: Vec<PathBuf>,
    /// Files and folders, there or not.
    pub(super) arguments: Vec<PathBuf>,
}

/// What is open to the server.
pub(super) fn grants(confinement: &Confinement, named: &Named) -> Vec<Grant> {
    let hidden: Vec<Hidden> = confinement
        .hidden
        .iter()
        .flat_map(|place| Hidden::find(place))
        .collect();
    let mut open = Open {
        hidden: &hidden,
        left: MOST,
        grants: Vec::new(),
    };
    let device = |name: &str| PathBuf::from(name);
    match confinement.level {
        SandboxLevel::Strict => {
            open.all(places::BASICS.map(device), Access::Read);
        }
        SandboxLevel::Default | SandboxLevel::Off => {
            open.walk(Path::new("/"), Access::Read);
            open.own_places(confinement, &named.arguments);
        }
    }
    open.all(places::DEVICES.map(device), Access::Write);
    open.all(named.programs.iter().cloned(), Access::Read);
    open.all(confinement.read.iter().cloned(), Access::Read);
    open.all(confinement.write.iter().cloned(), Access::Write);
    open.grants
}

struct Open<'a> {
    hidden: &'a [Hidden],
    left: usize,
    grants: Vec<Grant>,
}

impl Open<'_> {
    fn all(&mut self, places: impl IntoIterator<Item = PathBuf>, access: Access) {
        for place in places {
            self.place(&place, access);
        }
    }

    /// What is named may be hidden elsewhere: naming it opens it. What is hidden inside it stays hidden, except for the names
    /// in there: without them the folder couldn't be listed at all.
    fn place(&mut self, place: &Path, access: Access) {
        // What isn't there can't be opened.
        let Ok(place) = place.canonicalize() else {
            return;
        };
        if self.hides_inside(&place) {
            self.grants.push(Grant {
                path: place.clone(),
                is_folder: true,
                access: Access::Names,
            });
        }
        self.walk(&place, access);
    }

    /// Its folder, temporary folders, caches, and the folders that it is told to work on; never a folder that is everybody's.
    fn own_places(&mut self, confinement: &Confinement, arguments: &[PathBuf]) {
        let home = confinement.home.as_ref();
        let home = home.and_then(|home| home.canonicalize().ok());
        let mut without_home = self.hidden.to_vec();
        without_home.extend(home.clone().map(Hidden::exactly));
        let is_above_home =
            |place: &Path| home.as_ref().is_some_and(|home| home.starts_with(place));
        let own = std::iter::once(&confinement.cwd).chain(arguments);
        let own = own.filter_map(|place| place.canonicalize().ok());
        for place in own.collect::<Vec<_>>() {
            let access = match place.is_dir() && !places::is_of_system(&place) {
                true => Access::Write,
                // A file may be the script that is run.
                false => Access::Read,
            };
            if !is_above_home(&place) {
                self.place(&place, access);
            }
        }
        let others = confinement.temporary.iter().chain(&confinement.caches);
        let others = others.filter_map(|place| place.canonicalize().ok());
        for place in others.collect::<Vec<_>>() {
            if home.as_ref() == Some(&place) {
                continue;
            }
            let mut open = Open {
                hidden: match is_above_home(&place) {
                    true => &without_home,
                    false => self.hidden,
                },
                left: self.left,
                grants: std::mem::take(&mut self.grants),
            };
            open.walk(&place, Access::Write);
            (self.left, self.grants) = (open.left, open.grants);
        }
    }

    fn hides_inside(&self, place: &Path) -> bool {
        self.hidden.iter().any(|hidden| hidden.is_inside(place))
    }

    fn walk(&mut self, place: &Path, access: Access) {
        let is_folder = place.is_dir();
        if !is_folder || !self.hides_inside(place) {
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
            // A link leads to what has a place of its own.
            let is_link = entry.file_type().as_ref().is_ok_and(FileType::is_symlink);
            let path = entry.path();
            if self.left > 0 && !is_link && !self.hidden.iter().any(|hidden| hidden.covers(&path)) {
                self.walk(&path, access);
            }
        }
    }
}

/// Something that is closed: a file, or a folder with everything in it.
#[derive(Debug, Clone, PartialEq)]
struct Hidden {
    path: PathBuf,
    /// So is everything beside it whose name begins with its name.
    is_beginning: bool,
}

impl Hidden {
    fn exactly(path: PathBuf) -> Self {
        Self {
            path,
            is_beginning: false,
        }
    }

    /// Where it is, and where it leads to if it is a link. What isn't there yet stays closed when it comes.
    fn find(place: &str) -> Vec<Self> {
        let (place, is_beginning) = match place.strip_suffix('*') {
            Some(place) => (Path::new(place), true),
            None => (Path::new(place), false),
        };
        let mut found = vec![Self {
            path: real(place),
            is_beginning,
        }];
        let target = place.canonicalize().ok().map(Self::exactly);
        found.extend(target.filter(|target| target.path != found[0].path));
        found
    }

    fn is_inside(&self, place: &Path) -> bool {
        self.path.starts_with(place) && self.path != place
    }

    fn covers(&self, path: &Path) -> bool {
        if path == self.path {
            return true;
        }
        let (Some(own), Some(name)) = (self.path.file_name(), path.file_name()) else {
            return false;
        };
        let begins = || name.as_encoded_bytes().starts_with(own.as_encoded_bytes());
        self.is_beginning && path.parent() == self.path.parent() && begins()
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
