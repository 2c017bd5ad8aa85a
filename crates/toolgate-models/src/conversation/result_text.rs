//! Converts outcomes to the results that a model receives: bounded, and without invisible text.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;
use toolgate_core::text::is_invisible;
use toolgate_core::{ToolContent, ToolError, ToolOutcome, ToolOutput};

use crate::{ImageData, ModelCall, ToolResult};

// In base64. Anthropic accepts 5 MB.
const MAX_IMAGE_BYTES: usize = 4 << 20;

const MAX_IMAGES: usize = 8;

/// Full results that were too large for the model. The oldest are dropped when there are too many.
#[derive(Default)]
pub(super) struct FullResults {
    kept: VecDeque<(usize, Arc<ToolOutcome>)>,
    bytes: usize,
    // Outcomes of the running turn. Their results may still have to be shortened.
    pub(super) recent: Vec<Arc<ToolOutcome>>,
}

impl FullResults {
    const MAX_KEPT: usize = 100;
    const MAX_BYTES: usize = 64 << 20;

    /// Keeps the outcome of a call, by the executor's call id. Returns false if the call isn't
    /// recent or its outcome is too large.
    pub(super) fn keep(&mut self, call_id: &str) -> bool {
        if self.get(call_id).is_some() {
            return true;
        }
        let is_match = |outcome: &&Arc<ToolOutcome>| outcome.call_id.to_string() == call_id;
        let Some(outcome) = self.recent.iter().find(is_match) else {
            return false;
        };
        let bytes = full_size(outcome);
        if bytes > Self::MAX_BYTES {
            return false;
        }
        self.kept.push_back((bytes, Arc::clone(outcome)));
        self.bytes += bytes;
        while self.kept.len() > Self::MAX_KEPT || self.bytes > Self::MAX_BYTES {
            let Some((bytes, _)) = self.kept.pop_front() else {
                break;
            };
            self.bytes -= bytes;
        }
        true
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ToolOutcome> {
        self.kept.iter().map(|(_, outcome)| &**outcome)
    }

    pub(super) fn get(&self, call_id: &str) -> Option<&ToolOutcome> {
        self.iter()
            .find(|outcome| outcome.call_id.to_string() == call_id)
    }
}

/// The uncut result of a call, for a model that knows the tool as `wire_name`.
pub(super) fn to_tool_result(
    call: &ModelCall,
    wire_name: &str,
    outcome: &ToolOutcome,
) -> ToolResult {
    let (text, images) = match &outcome.result {
        Ok(output) => (output_text(output), images(output)),
        Err(error) => (error_text(outcome, error, wire_name), Vec::new()),
    };
    let text = match clean(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(text) => text,
    };
    ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        text,
        images,
        is_error: !outcome.is_success(),
        call_id: Some(outcome.call_id.to_string()),
    }
}

fn full_size(outcome: &ToolOutcome) -> usize {
    let output = match &outcome.result {
        Ok(output) => output,
        Err(error) => return error.to_string().len(),
    };
    let blocks = output.content.iter().map(ToolContent::as_value);
    let values = blocks.chain(&output.structured);
    values.map(|value| value.to_string().len()).sum()
}

fn output_text(output: &ToolOutput) -> String {
    let is_text = |block: &ToolContent| block.as_text().is_some();
    if output.structured.is_some() || output.content.iter().all(is_text) {
        return output.to_text();
    }
    let lines = output.content.iter().map(describe_block);
    lines.collect::<Vec<_>>().join("\n")
}

fn describe_block(block: &ToolContent) -> Cow<'_, str> {
    if let Some(text) = block.as_text() {
        return Cow::Borrowed(text);
    }
    let value = block.as_value();
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let size = |pointer: &str| display_size(text(pointer).map_or(0, str::len) / 4 * 3);
    let mime = text("/mimeType").unwrap_or("of an unknown kind");
    Cow::Owned(match block.kind() {
        "image" if image(block).is_some() => format!("[image: {mime}, {}]", size("/data")),
        "image" => format!("[image: {mime}, {}, can't be shown]", size("/data")),
        "audio" => format!("[audio: {mime}, {}, can't be played]", size("/data")),
        "resource_link" => {
            let uri = text("/uri").unwrap_or("?");
            let about = text("/description").or_else(|| text("/title"));
            let about = about.or_else(|| text("/name")).unwrap_or("no description");
            format!("[resource {uri}: {about}]")
        }
        "resource" => {
            let uri = text("/resource/uri").unwrap_or("?");
            match text("/resource/text") {
                Some(text) => format!("[resource {uri}]\n{text}"),
                None => format!("[resource {uri}: {}, not text]", size("/resource/blob")),
            }
        }
        _ => value.to_string(),
    })
}

fn images(output: &ToolOutput) -> Vec<ImageData> {
    let images = output.content.iter().filter_map(image);
    images.take(MAX_IMAGES).collect()
}

fn image(block: &ToolContent) -> Option<ImageData> {
    const KINDS: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    let value = block.as_value();
    let (mime_type, data) = (
        value.get("mimeType")?.as_str()?,
        value.get("data")?.as_str()?,
    );
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let shown = block.kind() == "image"
        && KINDS.contains(&mime_type)
        && (1..=MAX_IMAGE_BYTES).contains(&data.len())
        && data.bytes().all(base64);
    shown.then(|| ImageData {
        mime_type: mime_type.to_owned(),
        data: data.to_owned(),
    })
}

// The model knows the tool only by its wire name.
fn error_text(outcome: &ToolOutcome, error: &ToolError, wire_name: &str) -> String {
    if outcome.tool_name == wire_name {
        return outcome.to_model_text();
    }
    let mut error = error.clone();
    if let ToolError::Denied { tool, .. }
    | ToolError::NeedsApproval { tool, .. }
    | ToolError::Withheld { tool, .. }
    | ToolError::Unavailable { tool, .. }
    | ToolError::TimedOut { tool, .. }
    | ToolError::Cancelled { tool }
    | ToolError::Panicked { tool, .. }
    | ToolError::TooLarge { tool, .. }
    | ToolError::Overloaded { tool, .. }
    | ToolError::Interrupted { tool } = &mut error
    {
        wire_name.clone_into(tool);
    }
    let mut renamed = outcome.clone();
    renamed.result = Err(error);
    renamed.to_model_text()
}

/// The beginning of `text` and a mark that says how much is missing, together at most `max` bytes.
/// `id` is the call whose full result is kept.
pub(super) fn cut_text(text: &str, max: usize, id: Option<&str>) -> String {
    let (whole, kept_as) = (display_size(text.len()), full_result_note(id));
    let mark = |left_out: usize| {
        let left_out = display_size(left_out);
        format!("\n… [cut: {left_out} of {whole} left out{kept_as}]")
    };
    // A few spare bytes, because the number in the final mark may be longer.
    let room = max.saturating_sub(mark(text.len()).len() + 4);
    let end = text.floor_char_boundary(room);
    let mut out = text[..end].to_owned();
    out.push_str(&mark(text.len() - end));
    out
}

pub(super) fn full_result_note(id: Option<&str>) -> String {
    let said = |id| format!("; the full result is kept under call id {id}");
    id.map(said).unwrap_or_default()
}

pub(super) fn display_size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Removes terminal escapes, and characters that hide text from a person but not from a model.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| is_invisible(c) && !matches!(c, '\n' | '\t');
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_hidden) {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        if let Some(behind) = rest.strip_prefix('\u{1b}') {
            rest = skip_escape(behind);
        } else {
            let mut chars = rest.chars();
            match chars.next() {
                Some('\u{2028}' | '\u{2029}') => out.push('\n'),
                Some('\r') if !chars.as_str().starts_with('\n') => out.push('\n'),
                _ => {}
            }
            rest = chars.as_str();
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn skip_escape(text: &str) -> &str {
    let end = match text.as_bytes() {
        [b'[', parameters @ ..] => {
            let is_parameter = |byte: &&u8| (b' '..=b'?').contains(*byte);
            let letter = 1 + parameters.iter().take_while(is_parameter).count();
            let has_letter = text
                .as_bytes()
                .get(letter)
                .is_some_and(u8::is_ascii_graphic);
            letter + usize::from(has_letter)
        }
        // Any text up to a bell or an escape, which is looked at next.
        [b']' | b'P' | b'X' | b'^' | b'_', ..] => text.find(['\u{7}', '\u{1b}', '\n']).unwrap_or(1),
        [b'(' | b')', set, ..] if set.is_ascii_graphic() => 2,
        [b'\\' | b'=' | b'>' | b'c' | b'7' | b'8', ..] => 1,
        _ => 0,
    };
    &text[end..]
}
