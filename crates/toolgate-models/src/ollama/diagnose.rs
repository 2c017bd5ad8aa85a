//! Why a model on this machine does not see its tools, for `toolgate doctor`.

use std::time::Duration;

use tokio::time::Instant;
use toolgate_core::escape;

use super::api::{Api, Listed, Loaded, Shown, ToolUse, is_same, within};
use super::model_of;
use super::window::Window;
use crate::{ModelError, ModelSettings, Provider};

/// How long all questions together may take.
const LIMIT: Duration = Duration::from_secs(10);
/// The system prompt and a question, about.
const QUESTION: usize = 512;
/// The most names of models that one sentence tells.
const MOST_NAMES: usize = 8;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found.
    pub text: String,
    /// The command or setting that mends it, or makes it better.
    pub fix: Option<String>,
}

impl Finding {
    fn good(text: impl Into<String>) -> Self {
        Self {
            ok: true,
            text: text.into(),
            fix: None,
        }
    }

    fn bad(text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            ok: false,
            text: text.into(),
            fix: Some(fix.into()),
        }
    }

    fn with(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// Looks for every known cause of tools that the model does not see and that shows without asking it a question; the others are
/// notices of a turn. `tool_tokens`: what the tools take that a question goes out with, by
/// [`Conversation::offer`](crate::Conversation::offer). It ends at the first cause that hides all others.
///
/// ```no_run
/// # async fn example() {
/// let settings = toolgate_models::ModelSettings::default();
/// for finding in toolgate_models::ollama::diagnose(&settings, 2_000).await {
///     println!("{} {}", if finding.ok { "ok" } else { "!!" }, finding.text);
/// }
/// # }
/// ```
pub async fn diagnose(settings: &ModelSettings, tool_tokens: usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    // What ends the search is a finding as well.
    if let Err(last) = look(settings, tool_tokens, &mut findings).await {
        findings.push(last);
    }
    findings
}

async fn look(
    settings: &ModelSettings,
    tool_tokens: usize,
    findings: &mut Vec<Finding>,
) -> Result<(), Finding> {
    let deadline = within(LIMIT);
    let model = model_of(settings);
    let api = Api::new(settings)
        .map_err(|error| Finding::bad(error.to_string(), "correct OLLAMA_HOST, or model.url"))?;
    let version = api
        .version(deadline)
        .await
        .map_err(|error| unreachable(&error))?;
    findings.push(Finding::good(format!(
        "Ollama {version} answers at {}",
        api.http().shown()
    )));
    let there = api.models(deadline).await.map_err(|error| failed(&error))?;
    findings.push(is_there(&api, model, there, deadline).await?);
    let shown = api
        .show(model, deadline)
        .await
        .map_err(|error| failed(&error))?;
    findings.push(tools(model, &shown)?);
    findings.extend(thinking(settings, &shown));
    findings.extend(rescue(settings));
    findings.extend(fits(settings, &shown, tool_tokens));
    let loaded = api
        .loaded(model, deadline)
        .await
        .map_err(|error| failed(&error))?;
    findings.extend(memory(settings, &shown, loaded.as_ref(), tool_tokens));
    Ok(())
}

fn unreachable(error: &ModelError) -> Finding {
    let fix = match error {
        ModelError::Unreachable { .. } | ModelError::TimedOut { .. } => "ollama serve",
        ModelError::Key { .. } | ModelError::Failed { .. } => return failed(error),
        _ => "set OLLAMA_HOST, or model.url, to where Ollama is",
    };
    Finding::bad(error.to_string(), fix)
}

fn failed(error: &ModelError) -> Finding {
    let fix = match error {
        ModelError::Key { .. } => "set OLLAMA_API_KEY, or model.key",
        _ => "restart Ollama, and look at its log",
    };
    Finding::bad(error.to_string(), fix)
}

fn pull(model: &str) -> String {
    format!("ollama pull {}", escape(model))
}

fn recommended() -> String {
    let model = Provider::Ollama.default_model();
    format!("{}, then set \"name\": \"{model}\"", pull(model))
}

async fn is_there(
    api: &Api,
    model: &str,
    there: Vec<Listed>,
    deadline: Instant,
) -> Result<Finding, Finding> {
    let shown = escape(model);
    if there.is_empty() {
        return Err(Finding::bad("Ollama has no models", pull(model)));
    }
    if there.iter().any(|listed| is_same(&listed.name, model)) {
        let count = there.len();
        return Ok(Finding::good(format!(
            "the model '{shown}' is there, one of {count}"
        )));
    }
    let infos = api.infos(there, deadline).await;
    let useful: Vec<String> = infos
        .iter()
        .filter(|info| info.tools == ToolUse::Can)
        .map(|info| escape(&info.name))
        .collect();
    let text = match useful.len() {
        0 if infos.iter().any(|info| info.tools != ToolUse::CanNot) => format!(
            "the model '{shown}' is not there, and this Ollama does not tell which of its others can use tools"
        ),
        0 => format!("the model '{shown}' is not there, and none that is can use tools"),
        more => {
            let some = useful[..more.min(MOST_NAMES)].join(", ");
            let rest = match more.saturating_sub(MOST_NAMES) {
                0 => String::new(),
                rest => format!(" and {rest} more"),
            };
            format!("the model '{shown}' is not there; these can use tools: {some}{rest}")
        }
    };
    Err(Finding::bad(text, pull(model)))
}

fn tools(model: &str, shown: &Shown) -> Result<Finding, Finding> {
    let model = escape(model);
    if shown.capabilities.is_none() {
        let text =
            format!("this Ollama does not tell whether '{model}' can use tools: it is too old");
        return Ok(Finding::bad(
            text,
            "update Ollama: https://ollama.com/download",
        ));
    }
    if shown.can("tools") {
        return Ok(Finding::good(format!("'{model}' can use tools")));
    }
    let text = format!("'{model}' can not use tools: its template has no place for them");
    Err(Finding::bad(text, recommended()))
}

fn thinking(settings: &ModelSettings, shown: &Shown) -> Option<Finding> {
    match (settings.think, shown.can("thinking")) {
        (Some(true), false) if shown.capabilities.is_some() => Some(Finding::bad(
            "the model is to think before it answers, and can not",
            "remove \"think\" from the model's settings",
        )),
        (None, true) => Some(
            Finding::good("the model thinks before it answers, which takes time")
                .with("set \"think\": false for quick answers"),
        ),
        _ => None,
    }
}

/// Small models write calls as text, and so do others whose template Ollama does not know well.
fn rescue(settings: &ModelSettings) -> Option<Finding> {
    let text =
        "a call that the model writes as text, as small ones do, is not run: \"rescue\" is false";
    let finding = Finding::good(text).with("remove \"rescue\" from the model's settings");
    (!settings.rescue).then_some(finding)
}

/// What a question, the tools and an answer take at least in a window: a longer answer ends earlier in a small one, as a
/// conversation sees to.
fn needed(settings: &ModelSettings, tool_tokens: usize, window: usize) -> usize {
    QUESTION + tool_tokens + settings.max_tokens.min(window / 4)
}

fn fits(settings: &ModelSettings, shown: &Shown, tool_tokens: usize) -> Vec<Finding> {
    let needed = |window| needed(settings, tool_tokens, window);
    let mut findings = Vec::new();
    match shown.context {
        Some(context) if context < needed(context) => findings.push(Finding::bad(
            format!(
                "the model holds {context} tokens; with about {tool_tokens} of tools and an answer it needs {}",
                needed(context)
            ),
            "set \"maxTools\" or \"maxToolTokens\" so that fewer tools are offered, pin fewer, or take a model with a \
             larger window",
        )),
        Some(context) => findings.push(Finding::good(format!(
            "the model holds {context} tokens; the tools take about {tool_tokens}"
        ))),
        None => {}
    }
    match settings.context_tokens {
        Some(fixed) if fixed < needed(fixed) => findings.push(Finding::bad(
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

fn asked(settings: &ModelSettings, shown: &Shown, tool_tokens: usize) -> usize {
    let window = Window::new(settings.context_tokens);
    window.learn(shown.context);
    window.fit(QUESTION + tool_tokens, settings.max_tokens)
}

fn memory(
    settings: &ModelSettings,
    shown: &Shown,
    loaded: Option<&Loaded>,
    tool_tokens: usize,
) -> Vec<Finding> {
    let asked = asked(settings, shown, tool_tokens);
    let model = escape(model_of(settings));
    let Some(loaded) = loaded else {
        let own = match shown.num_ctx {
            Some(own) => format!(" (its own file says {own})"),
            None => String::new(),
        };
        let text = format!(
            "'{model}' is not loaded; it will be, with a window of {asked} tokens{own}: the first answer takes longer"
        );
        return vec![Finding::good(text)];
    };
    // A small window is most likely where there is no graphics card: neither finding hides the other.
    let found = [on_processor(&model, loaded), reloads(&model, loaded, asked)];
    let findings: Vec<Finding> = found.into_iter().flatten().collect();
    match findings.is_empty() {
        true => vec![Finding::good(format!("'{model}' is loaded"))],
        false => findings,
    }
}

fn on_processor(model: &str, loaded: &Loaded) -> Option<Finding> {
    if loaded.size_vram >= loaded.size {
        return None;
    }
    let part = 100 - u128::from(loaded.size_vram) * 100 / u128::from(loaded.size);
    let text = format!("{part} % of '{model}' run on the processor: answers are slow");
    Some(Finding::good(text).with("take a smaller model, or a smaller \"contextTokens\""))
}

fn reloads(model: &str, loaded: &Loaded, asked: usize) -> Option<Finding> {
    let now = loaded.context_length.filter(|now| *now != asked)?;
    let finding = Finding::good(format!(
        "'{model}' is loaded with a window of {now} tokens; it will be loaded again with {asked}, which the tools need"
    ));
    let fix = format!(
        "if it stays at {now} after a question, start Ollama with OLLAMA_CONTEXT_LENGTH={asked}"
    );
    Some(match now < asked {
        true => finding.with(fix),
        false => finding,
    })
}

#[cfg(test)]
mod tests;
