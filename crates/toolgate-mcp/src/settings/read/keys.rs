//! The keys of a server's entry, under all the names that MCP clients use.

/// All names of one setting. The first is our own.
pub(super) type EntryKey = &'static [&'static str];

macro_rules! entry_keys {
    ($($key:ident = $names:expr;)*) => {
        $(pub(super) const $key: EntryKey = &$names;)*
        pub(in crate::settings) const KEYS: &[EntryKey] = &[$($key),*];
    };
}

entry_keys! {
    COMMAND = ["command"];
    ARGS = ["args"];
    ENV = ["env", "environment", "envs"];
    CWD = ["cwd"];
    INHERIT = ["inheritEnv"];
    URL = ["url", "serverUrl", "httpUrl"];
    HEADERS = ["headers"];
    TYPE = ["type"];
    ERA = ["era", "protocolEra"];
    DISABLED = ["disabled", "enabled"];
    ALLOWED = ["allowedTools", "available_tools", "enabledTools"];
    EXCLUDED = ["excludedTools", "disabledTools"];
    START_TIMEOUT = ["startTimeout"];
    TIMEOUT = ["timeout"];
    NORMALIZE = ["normalize"];
    VALIDATE = ["validate"];
    OVERRIDE = ["override"];
    PARAMETER_NAMES = ["parameterNames"];
    CHECK = ["check"];
    HEALTH = ["health"];
    HOME = ["home"];
    PIN = ["pin"];
    MAX_MEMORY = ["maxMemory"];
    SANDBOX = ["sandbox"];
    SAMPLING = ["sampling"];
    CONTAINER = ["container"];
}

/// The keys that decide what is run, to which a person has to agree. `health` is one of them
/// because the health tool is called automatically.
pub(super) const IDENTITY_KEYS: [EntryKey; 10] = [
    COMMAND, ARGS, ENV, CWD, INHERIT, URL, HEADERS, TYPE, HEALTH, CONTAINER,
];
