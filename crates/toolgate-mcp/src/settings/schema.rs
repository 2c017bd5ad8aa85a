//! What an entry looks like to an editor.

use serde_json::{Map, Value, json};
use toolgate_core::{BYTES_PATTERN, DURATION_PATTERN};

use super::ServerSettings;

type Property = (&'static str, Value);

impl ServerSettings {
    /// The JSON Schema of one entry. Keys of other clients are let through, as when it is read.
    pub fn entry_schema() -> Value {
        let texts = json!({ "type": "array", "items": { "type": "string" } });
        let map = json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } });
        let properties = program(&texts, &map)
            .into_iter()
            .chain(remote(&texts, &map))
            .chain(offered_tools(&texts))
            .chain(calls(&map))
            .chain(supervision())
            .chain([
                ("sandbox", sandbox(&texts)),
                ("container", container(&texts)),
            ]);
        let properties: Map<String, Value> = properties
            .map(|(name, schema)| (name.to_owned(), schema))
            .collect();
        json!({ "type": "object", "properties": properties })
    }
}

fn described(schema: &Value, meaning: &str) -> Value {
    let mut schema = schema.clone();
    schema["description"] = meaning.into();
    schema
}

fn duration(meaning: &str) -> Value {
    json!({ "type": "string", "pattern": DURATION_PATTERN, "description": meaning })
}

fn truth(meaning: &str, default: bool) -> Value {
    json!({ "type": "boolean", "default": default, "description": meaning })
}

fn program(texts: &Value, map: &Value) -> [Property; 7] {
    let command = json!({ "anyOf": [{ "type": "string", "minLength": 1 }, texts],
        "description": "The program: a name on the PATH, or a path relative to this file; as a list with its arguments" });
    let env = described(map, "Variables of the program besides the usual ones");
    let cwd = json!({ "type": "string", "description": "Where it runs, relative to this file" });
    let inherit = "Pass on the whole environment, except for credentials: those are named in `env`";
    [
        ("command", command),
        ("args", described(texts, "Its arguments")),
        ("env", env.clone()),
        ("environment", env.clone()),
        ("envs", env),
        ("cwd", cwd),
        ("inheritEnv", truth(inherit, false)),
    ]
}

fn remote(texts: &Value, map: &Value) -> [Property; 7] {
    let url = json!({ "type": "string", "pattern": "^https?://", "description": "Where a remote server is" });
    let headers = json!({ "anyOf": [map, texts], "description": "Sent with every request" });
    let kind = json!({ "enum": ["stdio", "local", "http", "streamable-http", "streamableHttp", "sse", "remote"], "description": "Not needed: a command is stdio, a url is http" });
    let era = json!({ "enum": ["auto", "legacy", "modern"], "default": "auto", "description": "legacy begins with initialize; modern is 2026-07-28" });
    [
        ("url", url.clone()),
        ("serverUrl", url.clone()),
        ("httpUrl", url),
        ("headers", headers),
        ("type", kind),
        ("era", era.clone()),
        ("protocolEra", era),
    ]
}

fn offered_tools(texts: &Value) -> [Property; 7] {
    let allowed = described(
        texts,
        "Only these tools are taken; * stands for anything; empty: all",
    );
    let excluded = described(texts, "These tools are left out");
    [
        ("disabled", truth("Named, but not started", false)),
        ("enabled", truth("The opposite of disabled", true)),
        ("allowedTools", allowed.clone()),
        ("available_tools", allowed.clone()),
        ("enabledTools", allowed),
        ("excludedTools", excluded.clone()),
        ("disabledTools", excluded),
    ]
}

fn calls(map: &Value) -> [Property; 6] {
    let start = "How long one attempt to connect may take; unless set 10s, and 5m for the first start of npx, uvx, docker run and their like";
    let timeout = "Of one call of its tools, instead of limits.timeout";
    let normalize = json!({ "enum": ["undeclared", "always", "never"], "default": "undeclared", "description": "Which parameter names are turned from snake_case to camelCase" });
    let overrides = "Its tools go before local ones of the same name";
    let names = json!({ "type": "object", "additionalProperties": map, "description": "Parameter names by tool, from what a model says to what the server wants" });
    [
        ("startTimeout", duration(start)),
        ("timeout", duration(timeout)),
        ("normalize", normalize),
        (
            "validate",
            truth("Check arguments before they are sent", true),
        ),
        ("override", truth(overrides, false)),
        ("parameterNames", names),
    ]
}

fn supervision() -> [Property; 5] {
    let check = json!({ "type": "string", "description": "What to check if it does not start, for a person" });
    let health = json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "const": false }],
        "description": "A read-only tool of the server that says whether it can do its work; false asks none; unless set, check_zwave_health of zwave-mcp-server" });
    let home = json!({ "type": "boolean", "description": "Whether it is the server of a smart home; unless set, as its name or its program tells" });
    let pin = json!({ "enum": ["warn", "ask", "off"], "description": "What happens to a tool that is new or changed since you agreed to the server's tools: warn tells, ask withholds it until 'toolgate trust SERVER'; unless set, ask for tools that are or were destructive or aren't read-only any more, and warn for the rest" });
    let memory = json!({ "type": "string", "pattern": BYTES_PATTERN, "description": "What its processes may hold together" });
    [
        ("check", check),
        ("health", health),
        ("home", home),
        ("pin", pin),
        ("maxMemory", memory),
    ]
}

fn sandbox(texts: &Value) -> Value {
    let level = json!({ "enum": ["default", "strict", "off"], "default": "off" });
    let mut in_object = level.clone();
    in_object["default"] = json!("default");
    let port = json!({ "type": "integer", "minimum": 1, "maximum": 65535 });
    let properties = json!({
        "level": in_object,
        "read": described(texts, "Files and folders that may be read besides, relative to this file or with ~/"),
        "write": described(texts, "Files and folders that may be read and written besides"),
        "ports": { "type": "array", "items": port, "description": "With strict: TCP ports that may be connected to; 53 opens UDP too, for names" },
    });
    json!({
        "anyOf": [level, { "type": "object", "properties": properties, "additionalProperties": false }],
        "description": "What its processes may reach of this machine: default closes well-known secrets and writing anywhere but its folder, temporary folders and caches; strict closes all but what is listed",
    })
}

fn container(texts: &Value) -> Value {
    let image = json!({ "type": "string", "minLength": 1, "description": "The image; without a command it starts what it is made for" });
    let properties = json!({
        "image": image,
        "engine": { "anyOf": [{ "type": "string" }, texts], "description": "podman, docker or a path, as a list with options in front of run; unless set podman, else docker" },
        "network": { "type": "string", "default": "none", "description": "A network of the engine, such as bridge" },
        "mounts": { "type": "array", "items": { "type": "string" }, "description": "HERE:/THERE or HERE:/THERE:ro, relative to this file or with ~/" },
        "options": { "type": "array", "items": { "type": "string" }, "description": "More options of run" },
    });
    json!({
        "anyOf": [image, { "type": "object", "properties": properties, "required": ["image"], "additionalProperties": false }],
        "description": "Runs the server in a container, without a network and without files of this machine unless it says so",
    })
}

#[cfg(test)]
mod tests {
    use super::super::read::KEYS;
    use super::*;

    #[test]
    fn the_schema_has_every_key_that_is_read() {
        let schema = ServerSettings::entry_schema();
        let described: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        let mut read: Vec<&&str> = KEYS.iter().copied().flatten().collect();
        let mut sorted = described.clone();
        read.sort_unstable();
        sorted.sort_unstable();
        assert_eq!(sorted, read);
    }
}
