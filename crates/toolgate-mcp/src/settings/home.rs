//! Recognizes servers of smart homes by their settings, before they are started.

use std::collections::HashMap;

use toolgate_core::ParameterNames;
use toolgate_home::{HomeProtocol, HomeTool, PROTOCOLS};

use super::{ServerProgram, ServerSettings};

impl ServerSettings {
    /// True if the server serves a smart home, as its settings say or its name or program suggests.
    pub fn is_home(&self) -> bool {
        let is_named = |word: &str| PROTOCOLS.iter().any(|protocol| protocol.is_named_in(word));
        let is_program = |word: &String| {
            let file = word.rsplit('/').next().unwrap_or(word);
            is_named(file) && file.to_lowercase().contains("mcp")
        };
        let by_program = |program: &ServerProgram| {
            let mut words = std::iter::once(&program.command).chain(&program.args);
            words.any(is_program)
        };
        self.home
            .unwrap_or_else(|| is_named(&self.name) || self.program().is_some_and(by_program))
    }

    /// The renamed parameters of one of its tools. The built-in names for home tools apply to every
    /// server. The configuration can add to them and override them.
    pub(crate) fn parameter_names_for(&self, tool: &str) -> ParameterNames {
        let builtin = HomeTool::from_name(tool).map_or(&[][..], HomeTool::parameter_names);
        let builtin = builtin.iter().copied();
        let mut names: HashMap<String, String> = builtin
            .map(|(from, to)| (from.to_owned(), to.to_owned()))
            .collect();
        names.extend(self.parameter_names.get(tool).cloned().unwrap_or_default());
        ParameterNames::new(self.normalize, names)
    }
}

impl ServerProgram {
    pub(crate) fn home_protocol(&self) -> Option<&'static HomeProtocol> {
        let mut protocols = PROTOCOLS.into_iter();
        protocols.find(|protocol| self.runs(&protocol.server()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolgate_core::{
        FunctionTool, ToolCall, ToolDefinition, ToolError, ToolExecutor, ToolManager, ToolSource,
    };

    use super::*;
    use crate::ServerConnection;

    fn server(name: &str, command: &str) -> ServerSettings {
        let mut words = command.split(' ').map(str::to_owned);
        let program = ServerProgram {
            command: words.next().unwrap(),
            args: words.collect(),
            ..ServerProgram::default()
        };
        ServerSettings::new(name, ServerConnection::Stdio(program))
    }

    #[test]
    fn a_house_is_known_by_zwave_in_its_name_or_its_program() {
        for (name, command, expected) in [
            ("zwave", "x", true),
            ("My-Z-Wave", "x", true),
            ("upstairs", "/opt/zwave-mcp-server", true),
            ("upstairs", "/opt/toolgate zwave-mcp-server", true),
            ("upstairs", "npx -y @somebody/zwave-js-mcp", true),
            ("warehouse", "stock-mcp", false),
            ("homepage", "web-mcp", false),
            ("notes", "files-mcp /home/ada/zwave-mcp/notes", false),
            ("notes", "files-mcp zwave.txt", false),
        ] {
            let mut settings = server(name, command);
            assert_eq!(settings.is_home(), expected, "{name} {command}");
            for declared in [true, false] {
                settings.home = Some(declared);
                assert_eq!(settings.is_home(), declared, "what is declared counts");
            }
        }
    }

    #[tokio::test]
    async fn pn2_the_zwave_names_ship_for_any_server_and_configuration_adds_to_them() {
        let none = HashMap::new();
        let configured = HashMap::from(
            [("room", "area"), ("command", "verb")]
                .map(|(from, to)| (from.to_owned(), to.to_owned())),
        );
        let asked = json!({ "device_name": "x", "command": "on", "brightness": 5, "room": "r" });
        for (name, tool, configured, expected) in [
            (
                "zwave",
                "control_zwave_device",
                &none,
                r#"{"deviceName":"x","action":"on","level":5,"room":"r"}"#,
            ),
            (
                "house",
                "control_zwave_device",
                &none,
                r#"{"deviceName":"x","action":"on","level":5,"room":"r"}"#,
            ),
            (
                "zwave",
                "get_device_sensor_data",
                &none,
                r#"{"deviceName":"x","command":"on","brightness":5,"room":"r"}"#,
            ),
            (
                "zwave",
                "other",
                &none,
                r#"{"deviceName":"x","command":"on","brightness":5,"room":"r"}"#,
            ),
            (
                "zwave",
                "control_zwave_device",
                &configured,
                r#"{"deviceName":"x","verb":"on","level":5,"area":"r"}"#,
            ),
            (
                "zwave",
                "other",
                &configured,
                r#"{"deviceName":"x","verb":"on","brightness":5,"area":"r"}"#,
            ),
        ] {
            let mut settings = server(name, "x");
            settings.parameter_names = HashMap::from([(tool.to_owned(), configured.clone())]);
            let definition = ToolDefinition::builder("t", "Tells what it got", json!({}))
                .source(ToolSource::Mcp(name.to_owned()))
                .original_name(tool)
                .parameter_names(settings.parameter_names_for(tool));
            let echo =
                |arguments: Value, _| async move { Ok::<_, ToolError>(arguments.to_string()) };
            let manager = ToolManager::new();
            manager.add(FunctionTool::with_definition(definition, echo).unwrap());
            let executor = ToolExecutor::new(manager.into());
            let outcome = executor.execute(ToolCall::new("t", asked.clone())).await;
            assert_eq!(outcome.to_model_text(), expected, "{tool}");
        }
    }
}
