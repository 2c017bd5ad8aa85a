//! The places that a sandbox knows by itself.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::Program;

/// Secrets below the home folder. A `*` at the end means everything that begins so.
const SECRETS: [&str; 75] = [
    // Keys and logins.
    ".ssh",
    ".gnupg",
    ".netrc*",
    ".authinfo*",
    ".git-credentials*",
    ".config/git/credentials*",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".pgpass*",
    ".my.cnf*",
    ".mylogin.cnf",
    ".vault-token",
    // Clouds.
    ".aws",
    ".azure",
    ".boto*",
    ".s3cfg*",
    ".oci",
    ".kube",
    ".docker/config.json*",
    ".config/containers/auth.json",
    ".config/gcloud",
    ".config/doctl",
    ".config/hcloud",
    ".config/rclone",
    ".config/stripe",
    ".fly",
    ".terraform.d/credentials*",
    ".terraformrc",
    // Package managers.
    ".npmrc*",
    ".yarnrc*",
    ".pypirc*",
    ".pip",
    ".config/pip",
    ".local/share/uv/credentials",
    ".cargo/credentials*",
    ".gem/credentials",
    ".bundle/config",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".m2/settings*",
    ".gradle/gradle.properties",
    ".nuget/NuGet",
    // Keyrings and password managers.
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".password-store",
    ".config/op",
    ".config/1Password",
    ".config/Bitwarden*",
    ".config/keepassxc",
    // Browsers and mail.
    ".mozilla",
    ".thunderbird",
    ".librewolf",
    ".config/chromium*",
    ".config/google-chrome*",
    ".config/BraveSoftware",
    ".config/microsoft-edge*",
    ".config/opera*",
    ".config/vivaldi*",
    ".var/app",
    "snap/firefox",
    "snap/chromium",
    "snap/thunderbird",
    // Clients of models, with the keys of other servers.
    ".claude",
    ".claude.json*",
    ".config/Claude*",
    ".codex",
    ".cursor",
    ".gemini",
    // What was typed.
    ".bash_history*",
    ".zsh_history*",
    ".histfile*",
    ".python_history*",
    ".psql_history*",
    ".node_repl_history*",
];
/// What systemd and container engines hand to a service.
const SECRETS_OF_THE_SYSTEM: [&str; 2] = ["/run/credentials", "/run/secrets"];

/// What programs need to run, for a server that reads nothing else.
pub(super) const BASICS: [&str; 46] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/debian_version",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/dev/random",
    "/dev/urandom",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel",
    "/proc/sys/vm",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
];
/// Devices that any program may write to.
pub(super) const DEVICES: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];

/// Where temporary files go, besides `TMPDIR`.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// Caches below the home folder that stand outside of its `.cache`.
const CACHES: [&str; 3] = [
    ".bun/install/cache",
    ".yarn/berry/cache",
    ".local/share/pnpm/store",
];

pub(super) fn secrets(home: Option<&Path>) -> Vec<String> {
    let of_home = home.into_iter().flat_map(|home| {
        let home = home.to_string_lossy();
        SECRETS.map(|secret| format!("{home}/{secret}"))
    });
    let of_system = SECRETS_OF_THE_SYSTEM.map(str::to_owned);
    of_home.chain(of_system).collect()
}

/// True for a folder that belongs to everybody, though a server may run in it.
pub(super) fn is_shared(folder: &Path, home: Option<&Path>) -> bool {
    let is_above = |place: &Path| place.starts_with(folder);
    folder.components().count() <= 2
        || home.is_some_and(is_above)
        || TEMPORARY.iter().any(|place| is_above(Path::new(place)))
}

/// True for what belongs to the system, which only its administrator could change anyway.
pub(super) fn is_of_system(place: &Path) -> bool {
    const SYSTEM: [&str; 8] = [
        "/bin", "/boot", "/dev", "/etc", "/proc", "/sbin", "/sys", "/usr",
    ];
    place.parent().is_none() || SYSTEM.iter().any(|system| place.starts_with(system))
}

pub(super) fn temporary(variables: &BTreeMap<OsString, OsString>) -> Vec<PathBuf> {
    let usual = TEMPORARY.iter().map(PathBuf::from);
    usual.chain(folder(variables, "TMPDIR")).collect()
}

/// An absolute path in a variable.
pub(super) fn folder(variables: &BTreeMap<OsString, OsString>, name: &str) -> Option<PathBuf> {
    let value = variables.get(OsStr::new(name)).map(PathBuf::from);
    value.filter(|path| path.is_absolute())
}

/// Where programs keep what they can make again.
pub(super) struct Caches {
    /// The general one is the first.
    pub(super) all: Vec<PathBuf>,
    /// Those that this program will look for, and couldn't make.
    pub(super) made: Vec<PathBuf>,
}

impl Caches {
    pub(super) fn new(
        program: &Program,
        variables: &BTreeMap<OsString, OsString>,
        home: Option<&Path>,
    ) -> Self {
        let named = |names: &[&str]| names.iter().find_map(|name| folder(variables, name));
        let below = |place: &str| home.map(|home| home.join(place));
        let general = named(&["XDG_CACHE_HOME"]).or_else(|| below(".cache"));
        let npm = named(&["npm_config_cache", "NPM_CONFIG_CACHE"]).or_else(|| below(".npm"));
        let others = ["UV_CACHE_DIR", "PIP_CACHE_DIR"];
        let others = others.iter().filter_map(|name| folder(variables, name));
        let made = general
            .iter()
            .chain(npm.iter().filter(|_| program.uses_npm()))
            .cloned();
        Self {
            made: made.chain(others.clone()).collect(),
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
