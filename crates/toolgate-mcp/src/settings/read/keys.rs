//! The settings of a server's entry, by all the names that MCP clients have for them.

/// One setting under all the names it goes by; the first is ours.
pub(super) type Key = &'static [&'static str];

pub(super) const COMMAND: Key = &["command"];
pub(super) const ARGS: Key = &["args"];
pub(super) const ENV: Key = &["env", "environment", "envs"];
pub(super) const CWD: Key = &["cwd"];
pub(super) const INHERIT_ENV: Key = &["inheritEnv"];
pub(super) const URL: Key = &["url", "serverUrl", "httpUrl"];
pub(super) const HEADERS: Key = &["headers"];
pub(super) const TYPE: Key = &["type"];
pub(super) const ERA: Key = &["era", "protocolEra"];
pub(super) const DISABLED: Key = &["disabled", "enabled"];
pub(super) const ALLOWED: Key = &["allowedTools", "available_tools", "enabledTools"];
pub(super) const EXCLUDED: Key = &["excludedTools", "disabledTools"];
pub(super) const START_TIMEOUT: Key = &["startTimeout"];
pub(super) const TIMEOUT: Key = &["timeout"];
pub(super) const NORMALIZE: Key = &["normalize"];
pub(super) const VALIDATE: Key = &["validate"];
pub(super) const OVERRIDE: Key = &["override"];
pub(super) const PARAMETER_NAMES: Key = &["parameterNames"];
pub(super) const CHECK: Key = &["check"];
pub(super) const HEALTH: Key = &["health"];
pub(super) const HOME: Key = &["home"];
pub(super) const PIN: Key = &["pin"];
pub(super) const MAX_MEMORY: Key = &["maxMemory"];
pub(super) const SANDBOX: Key = &["sandbox"];
pub(super) const CONTAINER: Key = &["container"];

pub(in crate::settings) const KEYS: [Key; 25] = [
    COMMAND,
    ARGS,
    ENV,
    CWD,
    INHERIT_ENV,
    URL,
    HEADERS,
    TYPE,
    ERA,
    DISABLED,
    ALLOWED,
    EXCLUDED,
    START_TIMEOUT,
    TIMEOUT,
    NORMALIZE,
    VALIDATE,
    OVERRIDE,
    PARAMETER_NAMES,
    CHECK,
    HEALTH,
    HOME,
    PIN,
    MAX_MEMORY,
    SANDBOX,
    CONTAINER,
];

/// The settings that say what is run or contacted: who agreed to these agreed to the server. A health tool is called by itself,
/// so it is one of them.
pub(super) const RUN: [Key; 10] = [
    COMMAND,
    ARGS,
    ENV,
    CWD,
    INHERIT_ENV,
    URL,
    HEADERS,
    TYPE,
    HEALTH,
    CONTAINER,
];
