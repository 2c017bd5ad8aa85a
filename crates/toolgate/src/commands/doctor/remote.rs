//! `toolgate doctor --at URL`: checks a running gateway by what it reports.

use reqwest::StatusCode;
use serde_json::Value;
use toolgate_core::Redactor;
use toolgate_core::text::escape;

use super::DoctorFinding::{Bad, Good, Warning};
use super::{DoctorReport, detail};
use crate::commands::{block_on_interruptible, server};
use crate::exit::Exit;
use crate::remote::{self, RemoteError, RemoteGateway};

pub(super) fn run(remote: &RemoteGateway) -> anyhow::Result<Exit> {
    let mut report = DoctorReport::new(Redactor::default());
    Ok(
        match block_on_interruptible(report.check_running(remote))? {
            Some(()) => Exit::success_if(!report.failed),
            None => Exit::Interrupted,
        },
    )
}

impl DoctorReport {
    // Each check depends on the one before it.
    async fn check_running(&mut self, remote: &RemoteGateway) {
        if let Err(error) = remote.get(&["healthz"], &[]).await {
            return self.add("gateway", Bad(error.to_string()));
        }
        self.add("gateway", Good("it answers".to_owned()));
        let status = match get_ok(remote, &["api", "status"]).await {
            Ok(status) => status,
            Err(text) => return self.add("token", Bad(text)),
        };
        let token = match status["token_needed"] == true {
            true => "accepted",
            false => "none needed",
        };
        self.add("token", Good(token.to_owned()));
        self.check_status(&status);
        let servers = match get_ok(remote, &["api", "servers"]).await {
            Ok(Value::Array(servers)) => servers,
            Ok(_) => Vec::new(),
            Err(text) => return self.add("servers", Bad(text)),
        };
        let failed: Vec<String> = servers
            .iter()
            .filter(|server| self.check_server(server))
            .map(|server| text(&server["name"]))
            .collect();
        self.check_readiness(remote, &failed).await;
    }

    fn check_status(&mut self, status: &Value) {
        let (theirs, ours) = (text(&status["version"]), env!("CARGO_PKG_VERSION"));
        let finding = match theirs == ours {
            true => Good(theirs),
            false => Warning(format!(
                "the gateway is {theirs}, but this command is {ours}"
            )),
        };
        self.add("version", finding);
        let tools = format!("{} can be called with this token", status["tools"]);
        self.add("tools", Good(tools));
        let journal = &status["journal"];
        let finding = match journal["state"].as_str() {
            Some("ok") => Good("calls are recorded".to_owned()),
            Some("off") => Warning("calls are not recorded".to_owned()),
            _ => Bad(format!(
                "calls are not recorded: {}",
                text(&journal["error"])
            )),
        };
        self.add("journal", finding);
        let model = &status["model"];
        let finding = match model.is_object() {
            true => format!("{} {}", text(&model["provider"]), text(&model["name"])),
            false => "none is configured; the chat chooses one when it is used".to_owned(),
        };
        self.add("model", Good(finding.trim().to_owned()));
        let edited = status["restart_needed"].as_array().into_iter().flatten();
        let edited: Vec<String> = edited.map(|key| format!("'{}'", text(key))).collect();
        if !edited.is_empty() {
            let keys = edited.join(", ");
            let text = format!("{keys} changed in the file, which takes effect after a restart");
            self.add("configuration", Warning(text));
        }
    }

    fn check_server(&mut self, server: &Value) -> bool {
        let (name, state) = (text(&server["name"]), text(&server["state"]));
        let over = text(&server["transport"]);
        let health = &server["health"];
        let finding = match (state.as_str(), health["state"].as_str()) {
            ("connected", Some("degraded")) => {
                let (problem, tool) = (text(&health["problem"]), text(&health["tool"]));
                let problem = server::cannot_work(&problem, &tool);
                Bad(format!("{state} over {over}, but {problem}"))
            }
            ("connected", _) => Good(format!("{state} over {over}, tools: {}", server["tools"])),
            ("disabled", _) => Good("disabled in the configuration".to_owned()),
            _ => Bad(format!("{state} over {over}: {}", text(&server["error"]))),
        };
        let is_bad = matches!(finding, Bad(_));
        self.add(&name, finding);
        if health["state"] == "unknown" {
            let text = server::health_not_known(&text(&health["problem"]));
            self.add(&name, Warning(text));
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

    /// Checks readiness as a load balancer does, without repeating servers that
    /// were reported as failed.
    async fn check_readiness(&mut self, remote: &RemoteGateway, failed: &[String]) {
        let ready = match remote.get(&["readyz"], &[]).await {
            Ok(answer) => answer,
            Err(error) => return self.add("ready", Bad(error.to_string())),
        };
        let state = text(&ready.body["status"]);
        let is_reported = |reason: &str| {
            let mut names = failed.iter();
            names.any(|name| reason.starts_with(&format!("{name}: ")))
        };
        let reasons = ready.body["reasons"].as_array().into_iter().flatten();
        let reasons: Vec<String> = reasons.map(text).filter(|it| !is_reported(it)).collect();
        for reason in &reasons {
            self.add("ready", Bad(reason.clone()));
        }
        if ready.status != StatusCode::OK {
            self.add("ready", Bad(format!("it accepts no calls: it is {state}")));
        } else if reasons.is_empty() {
            self.add("ready", Good(state));
        }
    }
}

async fn get_ok(remote: &RemoteGateway, path: &[&str]) -> Result<Value, String> {
    match remote.get(path, &[]).await {
        Ok(answer) if answer.status == StatusCode::OK => Ok(answer.body),
        Ok(answer) => Err(remote::problem_detail(&answer)),
        Err(RemoteError::Unreachable(text) | RemoteError::Refused(text)) => Err(text),
    }
}

fn text(value: &Value) -> String {
    escape(value.as_str().unwrap_or_default())
}
