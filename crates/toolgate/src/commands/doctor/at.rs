//! `toolgate doctor --at URL`: a gateway that runs already, as it tells of itself.

use reqwest::StatusCode;
use serde_json::Value;
use toolgate_core::{Redactor, escape};

use super::{Finding, Report, detail};
use crate::commands::{runtime, server};
use crate::exit::{self, Exit};
use crate::remote::{self, Remote, Trouble};

pub(super) fn run(remote: &Remote) -> anyhow::Result<Exit> {
    let mut report = Report::new(Redactor::default());
    let runtime = runtime()?;
    let is_done = runtime.block_on(async {
        tokio::select! {
            () = report.on_running(remote) => true,
            () = exit::interrupted() => false,
        }
    });
    runtime.shutdown_background();
    Ok(match (is_done, report.failed) {
        (false, _) => Exit::Interrupted,
        (true, true) => Exit::Failure,
        (true, false) => Exit::Success,
    })
}

impl Report {
    /// Each check needs the one before it.
    async fn on_running(&mut self, remote: &Remote) {
        if let Err(trouble) = remote.get(&["healthz"], &[]).await {
            return self.add("gateway", &Finding::Bad(trouble.to_string()));
        }
        self.add("gateway", &Finding::Good("it answers".to_owned()));
        let status = match asked(remote, &["api", "status"]).await {
            Ok(status) => status,
            Err(text) => return self.add("token", &Finding::Bad(text)),
        };
        let token = match status["token_needed"] == true {
            true => "it is taken",
            false => "none is needed",
        };
        self.add("token", &Finding::Good(token.to_owned()));
        self.on_status(&status);
        let servers = match asked(remote, &["api", "servers"]).await {
            Ok(Value::Array(servers)) => servers,
            Ok(_) => Vec::new(),
            Err(text) => return self.add("servers", &Finding::Bad(text)),
        };
        let failed: Vec<String> = servers
            .iter()
            .filter(|server| self.on_server(server))
            .map(|server| text(&server["name"]))
            .collect();
        self.on_readiness(remote, &failed).await;
    }

    fn on_status(&mut self, status: &Value) {
        let (theirs, ours) = (text(&status["version"]), env!("CARGO_PKG_VERSION"));
        let finding = match theirs == ours {
            true => Finding::Good(theirs),
            false => Finding::Warning(format!("it is {theirs}, and this command is {ours}")),
        };
        self.add("version", &finding);
        let tools = format!("{} to be called with this token", status["tools"]);
        self.add("tools", &Finding::Good(tools));
        let journal = &status["journal"];
        let finding = match journal["state"].as_str() {
            Some("ok") => Finding::Good("calls are recorded".to_owned()),
            Some("off") => Finding::Warning("calls are not recorded".to_owned()),
            _ => Finding::Bad(format!(
                "calls are not recorded: {}",
                text(&journal["error"])
            )),
        };
        self.add("journal", &finding);
        let model = &status["model"];
        let finding = match model.is_object() {
            true => format!("{} {}", text(&model["provider"]), text(&model["name"])),
            false => "none is configured; the chat chooses one when it is used".to_owned(),
        };
        self.add("model", &Finding::Good(finding.trim().to_owned()));
        let edited = status["restart_needed"].as_array().into_iter().flatten();
        let edited: Vec<String> = edited.map(|key| format!("'{}'", text(key))).collect();
        if !edited.is_empty() {
            let keys = edited.join(", ");
            let text = format!("{keys} changed in the file: that takes effect at the next start");
            self.add("configuration", &Finding::Warning(text));
        }
    }

    /// True if the server is of no use now.
    fn on_server(&mut self, server: &Value) -> bool {
        let (name, state) = (text(&server["name"]), text(&server["state"]));
        let over = text(&server["transport"]);
        let health = &server["health"];
        let finding = match (state.as_str(), health["state"].as_str()) {
            ("connected", Some("degraded")) => {
                let (problem, tool) = (text(&health["problem"]), text(&health["tool"]));
                let problem = server::cannot_work(&problem, &tool);
                Finding::Bad(format!("{state} over {over}, but {problem}"))
            }
            ("connected", _) => {
                Finding::Good(format!("{state} over {over}, tools: {}", server["tools"]))
            }
            ("disabled", _) => Finding::Good("disabled in the configuration".to_owned()),
            _ => Finding::Bad(format!("{state} over {over}: {}", text(&server["error"]))),
        };
        let is_bad = matches!(finding, Finding::Bad(_));
        self.add(&name, &finding);
        if health["state"] == "unknown" {
            let text = server::health_not_known(&text(&health["problem"]));
            self.add(&name, &Finding::Warning(text));
        }
        if is_bad {
            let lines = server["stderr"].as_array().into_iter().flatten();
            let lines: Vec<String> = lines
                .filter_map(|line| line.as_str().map(str::to_owned))
                .collect();
            detail("stderr", &lines);
        }
        is_bad
    }

    /// Whether a load balancer would send it work, and what is not well besides the servers that have failed.
    async fn on_readiness(&mut self, remote: &Remote, failed: &[String]) {
        let ready = match remote.get(&["readyz"], &[]).await {
            Ok(answer) => answer,
            Err(trouble) => return self.add("ready", &Finding::Bad(trouble.to_string())),
        };
        let state = text(&ready.body["status"]);
        let is_told = |reason: &str| {
            let mut names = failed.iter();
            names.any(|name| reason.starts_with(&format!("{name}: ")))
        };
        let reasons = ready.body["reasons"].as_array().into_iter().flatten();
        let reasons: Vec<String> = reasons.map(text).filter(|it| !is_told(it)).collect();
        for reason in &reasons {
            self.add("ready", &Finding::Bad(reason.clone()));
        }
        if ready.status != StatusCode::OK {
            self.add(
                "ready",
                &Finding::Bad(format!("it takes no calls: it is {state}")),
            );
        } else if reasons.is_empty() {
            self.add("ready", &Finding::Good(state));
        }
    }
}

async fn asked(remote: &Remote, path: &[&str]) -> Result<Value, String> {
    match remote.get(path, &[]).await {
        Ok(answer) if answer.status == StatusCode::OK => Ok(answer.body),
        Ok(answer) => Err(remote::detail(&answer)),
        Err(Trouble::Away(text) | Trouble::Refused(text)) => Err(text),
    }
}

fn text(value: &Value) -> String {
    escape(value.as_str().unwrap_or_default())
}
