//! Finds out why a local model may not see its tools, for `toolgate doctor`.

use std::time::Duration;

use tokio::time::Instant;
use toolgate_core::text::escape;

use super::api::{self, ModelDetails, RunningModel, TaggedModel, ToolUse, deadline_in, is_same};
use super::window::OllamaWindow;
use crate::http::ProviderHttp;
use crate::{ModelError, ModelSettings, Provider};

// For all requests of a diagnosis together.
const TIMEOUT: Duration = Duration::from_secs(10);
// Roughly the size of the system prompt and a question.
const QUESTION_TOKENS: usize = 512;
const MAX_NAMES: usize = 8;

/// A fact about an Ollama server or its model, or a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OllamaFinding {
    /// False for a problem.
    pub ok: bool,
    pub text: String,
    /// The command or setting that fixes or improves it.
    pub fix: Option<String>,
}

impl OllamaFinding {
    fn ok(text: impl Into<String>) -> Self {
        Self {
            ok: true,
            text: text.into(),
            fix: None,
        }
    }

    fn problem(text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            ok: false,
            text: text.into(),
            fix: Some(fix.into()),
        }
    }

    fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// Looks for reasons why a model doesn't see its tools, as far as they can be found without asking
/// it a question. A turn reports other reasons as notices.
///
/// `tool_tokens` is the size of the offered tools, from
/// [`Conversation::offer`](crate::Conversation::offer). Stops at the first problem that hides all
/// others, such as a server that can't be reached.
pub async fn diagnose(settings: &ModelSettings, tool_tokens: usize) -> Vec<OllamaFinding> {
    let mut findings = Vec::new();
    // The problem that ends the search is a finding too.
    if let Err(last) = inspect(settings, tool_tokens, &mut findings).await {
        findings.push(last);
    }
    findings
}

async fn inspect(
    settings: &ModelSettings,
    tool_tokens: usize,
    findings: &mut Vec<OllamaFinding>,
) -> Result<(), OllamaFinding> {
    let deadline = deadline_in(TIMEOUT);
    let model = model_name(settings);
    let http = api::build_http(settings).map_err(|error| {
        OllamaFinding::problem(error.to_string(), "correct OLLAMA_HOST, or model.url")
    })?;
    let version = api::get_version(&http, deadline)
        .await
        .map_err(unreachable)?;
    findings.push(OllamaFinding::ok(format!(
        "Ollama {version} answers at {}",
        http.display_url()
    )));
    let installed = api::list_models(&http, deadline).await?;
    findings.push(check_installed(&http, model, installed, deadline).await?);
    let details = api::show_model(&http, model, deadline).await?;
    findings.push(check_tools(model, &details)?);
    findings.extend(check_thinking(settings, &details));
    findings.extend(check_rescue(settings));
    findings.extend(check_window(settings, &details, tool_tokens));
    let loaded = api::find_running(&http, model, deadline).await?;
    findings.extend(check_memory(
        settings,
        &details,
        loaded.as_ref(),
        tool_tokens,
    ));
    Ok(())
}

fn unreachable(error: ModelError) -> OllamaFinding {
    let fix = match error {
        ModelError::Unreachable { .. } | ModelError::TimedOut { .. } => "ollama serve",
        ModelError::Key { .. } | ModelError::Failed { .. } => return error.into(),
        _ => "set OLLAMA_HOST, or model.url, to where Ollama is",
    };
    OllamaFinding::problem(error.to_string(), fix)
}

impl From<ModelError> for OllamaFinding {
    fn from(error: ModelError) -> Self {
        let fix = match error {
            ModelError::Key { .. } => "set OLLAMA_API_KEY, or model.key",
            _ => "restart Ollama, and look at its log",
        };
        Self::problem(error.to_string(), fix)
    }
}

fn pull_command(model: &str) -> String {
    format!("ollama pull {}", escape(model))
}

fn recommend_model() -> String {
    let model = Provider::Ollama.default_model();
    format!("{}, then set \"name\": \"{model}\"", pull_command(model))
}

async fn check_installed(
    http: &ProviderHttp,
    model: &str,
    installed: Vec<TaggedModel>,
    deadline: Instant,
) -> Result<OllamaFinding, OllamaFinding> {
    let shown = escape(model);
    if installed.is_empty() {
        return Err(OllamaFinding::problem(
            "Ollama has no models",
            pull_command(model),
        ));
    }
    if installed.iter().any(|listed| is_same(&listed.name, model)) {
        let count = installed.len();
        return Ok(OllamaFinding::ok(format!(
            "the model '{shown}' is installed, one of {count}"
        )));
    }
    let infos = api::describe_models(http, installed, deadline).await;
    let useful: Vec<String> = infos
        .iter()
        .filter(|info| info.tools == ToolUse::Supported)
        .map(|info| escape(&info.name))
        .collect();
    let text = match useful.len() {
        0 if infos.iter().any(|info| info.tools != ToolUse::Unsupported) => format!(
            "the model '{shown}' is not installed, and this Ollama doesn't report which of its other models can use tools"
        ),
        0 => format!(
            "the model '{shown}' is not installed, and none of the installed models can use tools"
        ),
        more => {
            let some = useful[..more.min(MAX_NAMES)].join(", ");
            let rest = match more.saturating_sub(MAX_NAMES) {
                0 => String::new(),
                rest => format!(" and {rest} more"),
            };
            format!(
                "the model '{shown}' is not installed; these models can use tools: {some}{rest}"
            )
        }
    };
    Err(OllamaFinding::problem(text, pull_command(model)))
}

fn check_tools(model: &str, details: &ModelDetails) -> Result<OllamaFinding, OllamaFinding> {
    let model = escape(model);
    if details.capabilities.is_none() {
        let text = format!("this Ollama is too old to report whether '{model}' can use tools");
        return Ok(OllamaFinding::problem(
            text,
            "update Ollama: https://ollama.com/download",
        ));
    }
    if details.can("tools") {
        return Ok(OllamaFinding::ok(format!("'{model}' can use tools")));
    }
    let text = format!("'{model}' can't use tools: its template has no place for them");
    Err(OllamaFinding::problem(text, recommend_model()))
}

fn check_thinking(settings: &ModelSettings, details: &ModelDetails) -> Option<OllamaFinding> {
    match (settings.think, details.can("thinking")) {
        (Some(true), false) if details.capabilities.is_some() => Some(OllamaFinding::problem(
            "\"think\" is true, but the model can't think before it answers",
            "remove \"think\" from the model's settings",
        )),
        (None, true) => Some(
            OllamaFinding::ok("the model thinks before it answers, which takes time")
                .with_fix("set \"think\": false for quick answers"),
        ),
        _ => None,
    }
}

// Small models write calls as text, and so do others whose chat template Ollama doesn't parse well.
fn check_rescue(settings: &ModelSettings) -> Option<OllamaFinding> {
    let text =
        "a call that the model writes as text, as small ones do, is not run: \"rescue\" is false";
    let finding = OllamaFinding::ok(text).with_fix("remove \"rescue\" from the model's settings");
    (!settings.rescue).then_some(finding)
}

// The tokens that a question, the tools and an answer need at least. In a small window the answer
// is shorter, as in a conversation.
fn required_tokens(settings: &ModelSettings, tool_tokens: usize, window: usize) -> usize {
    QUESTION_TOKENS + tool_tokens + settings.max_tokens.min(window / 4)
}

fn check_window(
    settings: &ModelSettings,
    details: &ModelDetails,
    tool_tokens: usize,
) -> Vec<OllamaFinding> {
    let needed = |window| required_tokens(settings, tool_tokens, window);
    let mut findings = Vec::new();
    match details.context {
        Some(context) if context < needed(context) => findings.push(OllamaFinding::problem(
            format!(
                "the model holds {context} tokens; with about {tool_tokens} of tools and an answer it needs {}",
                needed(context)
            ),
            "set \"maxTools\" or \"maxToolTokens\" so that fewer tools are offered, pin fewer, or take a model with a \
             larger window",
        )),
        Some(context) => findings.push(OllamaFinding::ok(format!(
            "the model holds {context} tokens; the tools take about {tool_tokens}"
        ))),
        None => {}
    }
    match settings.context_tokens {
        Some(fixed) if fixed < needed(fixed) => findings.push(OllamaFinding::problem(
            format!("\"contextTokens\" is {fixed}: the beginning of a prompt, where the tools are, would be cut"),
            format!(
                "set \"contextTokens\": {}, or remove it",
                needed(usize::MAX).next_power_of_two()
            ),
        )),
        _ => {}
    }
    findings
}

fn requested_window(settings: &ModelSettings, details: &ModelDetails, tool_tokens: usize) -> usize {
    let window = OllamaWindow::new(settings.context_tokens);
    window.learn(details.context);
    window.fit(QUESTION_TOKENS + tool_tokens, settings.max_tokens)
}

fn model_name(settings: &ModelSettings) -> &str {
    match settings.name.trim() {
        "" => Provider::Ollama.default_model(),
        name => name,
    }
}

fn check_memory(
    settings: &ModelSettings,
    details: &ModelDetails,
    loaded: Option<&RunningModel>,
    tool_tokens: usize,
) -> Vec<OllamaFinding> {
    let asked = requested_window(settings, details, tool_tokens);
    let model = escape(model_name(settings));
    let Some(loaded) = loaded else {
        let own = match details.num_ctx {
            Some(own) => format!(" (its own file says {own})"),
            None => String::new(),
        };
        let text = format!(
            "'{model}' is not loaded; it will be, with a window of {asked} tokens{own}: the first answer takes longer"
        );
        return vec![OllamaFinding::ok(text)];
    };
    // Reports both, because a small window is most common on machines without a graphics card.
    let found = [
        check_processor(&model, loaded),
        check_reload(&model, loaded, asked),
    ];
    let findings: Vec<OllamaFinding> = found.into_iter().flatten().collect();
    match findings.is_empty() {
        true => vec![OllamaFinding::ok(format!("'{model}' is loaded"))],
        false => findings,
    }
}

fn check_processor(model: &str, loaded: &RunningModel) -> Option<OllamaFinding> {
    if loaded.size_vram >= loaded.size {
        return None;
    }
    let part = 100 - u128::from(loaded.size_vram) * 100 / u128::from(loaded.size);
    let text = format!("{part} % of '{model}' run on the processor: answers are slow");
    Some(OllamaFinding::ok(text).with_fix("take a smaller model, or a smaller \"contextTokens\""))
}

fn check_reload(model: &str, loaded: &RunningModel, asked: usize) -> Option<OllamaFinding> {
    let now = loaded.context_length.filter(|now| *now != asked)?;
    let finding = OllamaFinding::ok(format!(
        "'{model}' is loaded with a window of {now} tokens; it will be loaded again with {asked}, which the tools need"
    ));
    let fix = format!(
        "if it stays at {now} after a question, start Ollama with OLLAMA_CONTEXT_LENGTH={asked}"
    );
    Some(match now < asked {
        true => finding.with_fix(fix),
        false => finding,
    })
}

#[cfg(test)]
mod tests;
