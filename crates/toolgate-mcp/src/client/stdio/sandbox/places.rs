//! Built-in lists of paths: secrets, system folders, temporary folders and caches.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::ServerProgram;

// Separate files, so that people can review them.
const SECRETS: &str = include_str!("secrets.txt");
const BASICS: &str = include_str!("basics.txt");

// Where systemd and container engines put the secrets of a service.
const SYSTEM_SECRETS: [&str; 2] = ["/run/credentials", "/run/secrets"];

// Devices that any program may write to.
pub(super) const DEVICES: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];

const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
const CACHES: [&str; 3] = [
    ".bun/install/cache",
    ".yarn/berry/cache",
    ".local/share/pnpm/store",
];

fn entries(list: &'static str) -> impl Iterator<Item = &'static str> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace)
}

pub(super) fn basics() -> Vec<&'static str> {
    entries(BASICS).collect()
}

pub(super) fn secrets(home: Option<&Path>) -> Vec<String> {
    let of_home = home.into_iter().flat_map(|home| {
        let home = home.to_string_lossy().into_owned();
        entries(SECRETS).map(move |secret| format!("{home}/{secret}"))
    });
    let of_system = SYSTEM_SECRETS.map(str::to_owned);
    of_home.chain(of_system).collect()
}

/// True for a folder that other programs use too, such as `/tmp`. It isn't hidden, even if it is
/// the folder of a server.
pub(super) fn is_shared(folder: &Path, home: Option<&Path>) -> bool {
    let is_above = |place: &Path| place.starts_with(folder);
    folder.components().count() <= 2
        || home.is_some_and(is_above)
        || TEMPORARY.iter().any(|place| is_above(Path::new(place)))
}

/// True for system paths, which only an administrator can change.
pub(super) fn is_system_path(place: &Path) -> bool {
    const SYSTEM: [&str; 8] = [
        "/bin", "/boot", "/dev", "/etc", "/proc", "/sbin", "/sys", "/usr",
    ];
    place.parent().is_none() || SYSTEM.iter().any(|system| place.starts_with(system))
}

pub(super) fn temporary(variables: &BTreeMap<OsString, OsString>) -> Vec<PathBuf> {
    let usual = TEMPORARY.iter().map(PathBuf::from);
    usual.chain(folder(variables, "TMPDIR")).collect()
}

pub(super) fn folder(variables: &BTreeMap<OsString, OsString>, name: &str) -> Option<PathBuf> {
    let value = variables.get(OsStr::new(name)).map(PathBuf::from);
    value.filter(|path| path.is_absolute())
}

pub(super) struct CacheFolders {
    pub(super) all: Vec<PathBuf>,
    // Those that the launcher creates.
    pub(super) created: Vec<PathBuf>,
}

impl CacheFolders {
    pub(super) fn new(
        program: &ServerProgram,
        variables: &BTreeMap<OsString, OsString>,
        home: Option<&Path>,
    ) -> Self {
        let named = |names: &[&str]| names.iter().find_map(|name| folder(variables, name));
        let below = |place: &str| home.map(|home| home.join(place));
        let general = named(&["XDG_CACHE_HOME"]).or_else(|| below(".cache"));
        let npm = named(&["npm_config_cache", "NPM_CONFIG_CACHE"]).or_else(|| below(".npm"));
        let others = ["UV_CACHE_DIR", "PIP_CACHE_DIR"];
        let others = others.iter().filter_map(|name| folder(variables, name));
        let created = general
            .iter()
            .chain(npm.iter().filter(|_| program.uses_npm()))
            .cloned();
        Self {
            created: created.chain(others.clone()).collect(),
            all: general
                .iter()
                .chain(&npm)
                .cloned()
                .chain(others)
                .chain(CACHES.iter().filter_map(|place| below(place)))
                .collect(),
        }
    }
}
