//! How lists of resources and prompts look: by server on a terminal, one line each in a pipe.

use serde_json::Value;
use toolgate_core::text::{escape, truncate};

use crate::commands::tool_list::first_sentence;
use crate::content_text::shown_size;
use crate::wrap;

// Bytes of an address or a name on a terminal.
const MAX_TERM_LEN: usize = 512;

/// One line of a list.
struct Row {
    server: String,
    // What to type: an address or a name.
    name: String,
    // What to type behind a prompt's name.
    arguments: String,
    meaning: String,
    // What a pipe gets behind the server.
    columns: Vec<String>,
}

impl Row {
    fn term(&self) -> String {
        let term = format!("{} {}", self.name, self.arguments);
        truncate(term.trim_end(), MAX_TERM_LEN)
    }
}

/// Wrapped to `width` columns and grouped by server, or tab-separated without a width: address,
/// server, type, size, description.
pub(super) fn resources(lists: &Value, width: Option<usize>) -> String {
    let listed = |member: &'static str, key: &'static str| {
        let entries = lists[member].as_array().into_iter().flatten();
        entries.map(move |entry| resource(entry, key))
    };
    let resources = listed("resources", "uri").chain(listed("templates", "uriTemplate"));
    format_rows(resources.collect(), width)
}

/// Like [`resources`]; in a pipe: name, server, arguments, description.
pub(in crate::commands) fn prompts(lists: &Value, width: Option<usize>) -> String {
    let prompts = lists["prompts"].as_array().into_iter().flatten();
    format_rows(prompts.map(prompt).collect(), width)
}

fn resource(entry: &Value, key: &str) -> Row {
    let mime = text_field(entry, "mimeType");
    let size = entry["size"].as_u64();
    let mut facts = Vec::new();
    if key == "uriTemplate" {
        facts.push("template".to_owned());
    }
    if !mime.is_empty() {
        facts.push(mime.clone());
    }
    facts.extend(size.map(shown_size));
    let about = about(entry);
    let facts = match facts.is_empty() {
        true => String::new(),
        false => format!(" ({})", facts.join(", ")),
    };
    Row {
        server: text_field(entry, "server"),
        name: text_field(entry, key),
        arguments: String::new(),
        meaning: format!("{about}{facts}").trim_start().to_owned(),
        columns: vec![
            mime,
            size.map(|size| size.to_string()).unwrap_or_default(),
            about,
        ],
    }
}

fn prompt(entry: &Value) -> Row {
    let arguments = entry["arguments"].as_array().into_iter().flatten();
    let arguments = arguments.map(|argument| {
        let name = text_field(argument, "name");
        match argument["required"] == true {
            true => format!("{name}=…"),
            false => format!("[{name}=…]"),
        }
    });
    let arguments = arguments.collect::<Vec<_>>().join(" ");
    let about = about(entry);
    Row {
        server: text_field(entry, "server"),
        name: text_field(entry, "name"),
        arguments: arguments.clone(),
        meaning: about.clone(),
        columns: vec![arguments, about],
    }
}

/// Title and description, without what one repeats of the other.
fn about(entry: &Value) -> String {
    let title = ["title", "name"].map(|key| text_field(entry, key));
    let has_address = entry.get("uri").or(entry.get("uriTemplate")).is_some();
    let title = match (&title, has_address) {
        ([title, _], _) if !title.is_empty() => title,
        // The name of a prompt is what one types.
        ([_, name], true) => name,
        _ => &String::new(),
    };
    let description = escape(&first_sentence(
        entry["description"].as_str().unwrap_or_default(),
    ));
    match (title.is_empty(), description.is_empty()) {
        (_, true) => title.clone(),
        (true, false) => description,
        _ if description.to_lowercase().contains(&title.to_lowercase()) => description,
        _ => format!("{title}: {description}"),
    }
}

fn text_field(entry: &Value, key: &str) -> String {
    escape(entry[key].as_str().unwrap_or_default())
}

fn format_rows(mut rows: Vec<Row>, width: Option<usize>) -> String {
    let Some(width) = width else {
        let lines = rows.iter().map(|row| {
            let columns = row.columns.join("\t");
            format!("{}\t{}\t{columns}", row.name, row.server)
        });
        return lines.collect::<Vec<_>>().join("\n");
    };
    let mut servers: Vec<String> = Vec::new();
    for row in &rows {
        if !servers.contains(&row.server) {
            servers.push(row.server.clone());
        }
    }
    // Templates follow the resources of the same server.
    rows.sort_by_key(|row| servers.iter().position(|server| *server == row.server));
    let bold = anstyle::Style::new().bold();
    let groups = rows.chunk_by(|one, next| one.server == next.server);
    let groups = groups.map(|group| {
        let server = group.first().map_or("", |row| &row.server);
        let pairs: Vec<_> = group
            .iter()
            .map(|row| (row.term(), row.meaning.clone()))
            .collect();
        let list = wrap::definition_list(&pairs, 2, Some(width));
        format!("{bold}server {server}{bold:#}\n{list}")
    });
    groups.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lists() -> Value {
        json!({
            "resources": [
                { "uri": "notes:1", "server": "a", "name": "today", "title": "Today", "mimeType": "text/plain", "size": 2100 },
                { "uri": "toolgate://b/notes:1", "server": "b", "name": "b.txt", "description": "What b wrote. And more" },
                { "uri": "notes:2", "server": "a", "name": "note", "description": "A note\u{1b}[2J" },
            ],
            "templates": [
                { "uriTemplate": "notes:{day}", "server": "a", "name": "day", "description": "The note of a day" },
            ],
            "prompts": [
                { "name": "review", "server": "a", "description": "Reviews code",
                  "arguments": [{ "name": "code", "required": true }, { "name": "style" }] },
                { "name": "b__review", "server": "b", "title": "Review" },
            ],
        })
    }

    #[test]
    fn a_terminal_groups_entries_by_server() {
        let plain = |text: String| anstream::adapter::strip_str(&text).to_string();
        assert_eq!(
            plain(resources(&lists(), Some(50))),
            "server a
  notes:1      Today (text/plain, 2.1 kB)
  notes:2      A note\\u{1b}[2J
  notes:{day}  The note of a day (template)

server b
  toolgate://b/notes:1  b.txt: What b wrote"
        );
        assert_eq!(
            plain(prompts(&lists(), Some(60))),
            "server a
  review code=… [style=…]  Reviews code

server b
  b__review  Review"
        );
    }

    #[test]
    fn a_pipe_gets_tab_separated_lines() {
        assert_eq!(
            resources(&lists(), None),
            "notes:1\ta\ttext/plain\t2100\tToday
toolgate://b/notes:1\tb\t\t\tb.txt: What b wrote
notes:2\ta\t\t\tA note\\u{1b}[2J
notes:{day}\ta\t\t\tThe note of a day"
        );
        assert_eq!(
            prompts(&lists(), None),
            "review\ta\tcode=… [style=…]\tReviews code\nb__review\tb\t\tReview"
        );
    }
}
