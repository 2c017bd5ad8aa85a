//! Describes the state of an MCP server in words.

use toolgate_core::text::escape;
use toolgate_mcp::{HealthState, ServerState, ServerStatus};

use super::trust_tools;
use crate::servers::ago;
use crate::wrap::pluralize;

/// The state in one line: `connected over stdio, legacy protocol, 5 tools, in 120 ms`.
pub(super) fn describe_state(status: &ServerStatus) -> String {
    let mut words = vec![match status.state {
        ServerState::Idle if status.remembered => format!("remembered, over {}", status.transport),
        state => format!("{state} over {}", status.transport),
    }];
    words.extend(status.era.map(|era| format!("{era} protocol")));
    words.push(pluralize(status.tools, "tool"));
    let listed_at = status.listed_at.filter(|_| status.remembered);
    words.extend(listed_at.map(|time| format!("listed {}", ago(time))));
    let milliseconds = status.connected_in.map(|time| time.as_secs_f64() * 1e3);
    words.extend(milliseconds.map(|time| format!("in {time:.0} ms")));
    words.join(", ")
}

pub(super) fn pollution(status: &ServerStatus) -> Option<String> {
    let count = match status.stray_line_count {
        0 => return None,
        1 => "1 line on its stdout was not a message".to_owned(),
        several => format!("{several} lines on its stdout were not messages"),
    };
    Some(format!("{count}; a server should log to stderr"))
}

pub(super) fn degraded(status: &ServerStatus) -> Option<String> {
    let (problem, health) = (status.degraded()?, status.health.as_ref()?);
    Some(cannot_work(problem, &health.tool))
}

pub(super) fn cannot_work(problem: &str, tool: &str) -> String {
    format!("it can't do its work: {problem} (reported by {tool})")
}

pub(super) fn unknown_health(status: &ServerStatus) -> Option<String> {
    let health = status.health.as_ref();
    let health = health.filter(|health| health.state == HealthState::Unknown)?;
    let problem = health.problem.as_deref().unwrap_or("it gave no reason");
    Some(health_not_known(problem))
}

pub(super) fn health_not_known(problem: &str) -> String {
    format!("its health is unknown: {problem}; see 'health' in its entry")
}

pub(super) fn withheld(status: &ServerStatus) -> Option<String> {
    let agrees = format!("'toolgate trust {}'", status.name);
    Some(match status.withheld() {
        0 => return None,
        1 => format!("1 tool is withheld until you agree to it: {agrees}"),
        several => format!("{several} tools are withheld until you agree to them: {agrees}"),
    })
}

pub(super) fn changes(status: &ServerStatus) -> Vec<String> {
    let tools = status.changes.iter().flat_map(|changes| &changes.tools);
    tools
        .map(|change| format!("{}: {}", change.tool, trust_tools::summary(change)))
        .collect()
}

pub(super) fn describe(status: &ServerStatus) -> String {
    let bold = anstyle::Style::new().bold();
    let name = escape(&status.name);
    let mut text = format!("{bold}Server {name}{bold:#}  ({})", describe_state(status));
    let mut part = |title: &str, lines: &[String]| {
        if lines.is_empty() {
            return;
        }
        text.push_str(&format!("\n{title}"));
        for line in lines {
            text.push_str(&format!("\n  {}", escape(line)));
        }
    };
    part("Error:", status.error.as_slice());
    let pollution = pollution(status).map(|text| format!("{text}:"));
    part(
        pollution.as_deref().unwrap_or_default(),
        &status.stray_lines,
    );
    part("Refused tools:", &status.refused);
    part(
        "Tools that differ from what you agreed to:",
        &changes(status),
    );
    part("Last lines of its stderr:", &status.stderr);
    text
}
