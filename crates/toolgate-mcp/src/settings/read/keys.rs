//! The keys of a server's entry, under all the names that MCP clients use.

/// All names of one setting. The first is Toolgate's own name.
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
    INHERIT = ["inheritEnv"]; // passes on the whole environment, except credentials
    URL = ["url", "serverUrl", "httpUrl"];
    HEADERS = ["headers"];
    TYPE = ["type"];
    ERA = ["era", "protocolEra"];
    // "enabled" is the inverse; `read_switches` negates it.
    DISABLED = ["disabled", "enabled"];
    ALLOWED = ["allowedTools", "available_tools", "enabledTools"];
    EXCLUDED = ["excludedTools", "disabledTools"];
    START_TIMEOUT = ["startTimeout"];
    TIMEOUT = ["timeout"];
    NORMALIZE = ["normalize"];
    VALIDATE = ["validate"];
    OVERRIDE = ["override"];
    PARAMETER_NAMES = ["parameterNames"];
    CHECK = ["check"]; // a hint for the user if the server doesn't start
    HEALTH = ["health"];
    HOME = ["home"]; // whether the server is a smart home
    PIN = ["pin"]; // how changed tool definitions are treated
    MAX_MEMORY = ["maxMemory"];
    SANDBOX = ["sandbox"];
    SAMPLING = ["sampling"];
    CONTAINER = ["container"];
}

/// Changing any of these keys requires the user's approval again, because they decide what is run
/// or contacted. `health` is one of them because the health tool is called automatically.
pub(super) const APPROVAL_KEYS: [EntryKey; 10] = [
    COMMAND, ARGS, ENV, CWD, INHERIT, URL, HEADERS, TYPE, HEALTH, CONTAINER,
];
