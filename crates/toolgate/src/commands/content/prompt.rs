//! `toolgate prompt NAME k=v…`: prints the messages of a prompt.

use serde_json::Value;
use toolgate_core::text::escape;

use super::request::{ContentCommand, ContentTarget};
use crate::cli::{GlobalOptions, PromptOptions};
use crate::commands::call::CliArguments;
use crate::content_text::{for_terminal, message_text, prompt_text};
use crate::exit::Exit;
use crate::output;

// Bytes of arguments from stdin. A server's prompt isn't a place for more.
const MAX_ARGUMENTS: usize = 4 << 20;

pub(crate) fn run(global: &GlobalOptions, options: &PromptOptions) -> anyhow::Result<Exit> {
    let arguments = CliArguments::read(&options.arguments, MAX_ARGUMENTS)?;
    let command = ContentCommand {
        wanted: ContentTarget::Prompt(&options.name, arguments),
        command: "toolgate prompt",
        json: options.json,
        call: &options.call,
        show: Box::new(|result| {
            print_messages(result);
            Ok(Exit::Success)
        }),
    };
    command.run(global)
}

fn print_messages(result: &Value) {
    let messages = result["messages"].as_array().map_or(&[][..], Vec::as_slice);
    if messages.is_empty() {
        return output::print_note("the prompt has no messages");
    }
    match output::stdout_is_terminal() {
        true => output::print_text(&by_role(messages)),
        false => output::print_bytes(format!("{}\n", prompt_text(messages)).as_bytes()),
    }
}

/// The messages for a person, each under its role.
fn by_role(messages: &[Value]) -> String {
    let bold = anstyle::Style::new().bold();
    let shown = messages.iter().map(|message| {
        let role = escape(message["role"].as_str().unwrap_or("user"));
        let text = for_terminal(&message_text(message));
        format!("{bold}{role}{bold:#}\n{}", text.trim_end_matches('\n'))
    });
    shown.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_under_their_roles_and_control_no_terminal() {
        let messages = [
            json!({ "role": "user", "content": { "type": "text", "text": "Hi\u{1b}[2J\n" } }),
            json!({ "role": "assistant", "content": { "type": "text", "text": "Hello" } }),
        ];
        let shown = anstream::adapter::strip_str(&by_role(&messages)).to_string();
        assert_eq!(shown, "user\nHi\\u{1b}[2J\n\nassistant\nHello");
    }
}
