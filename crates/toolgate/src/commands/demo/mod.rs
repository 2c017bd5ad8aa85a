//! `toolgate demo`: a chat with a model, tools and a dashboard, in a simulated house.
//!
//! ```text
//!  chat ─▶ tools ─▶ toolgate zwave-mcp-server ─▶ broker ◀─ simulated house
//!          this process     a child of it         both in this process
//! ```

mod house;
mod view;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};

use super::block_on_threads;
use super::chat::{self, ChatSetup, LineSource};
use crate::chat_session::{ChatSession, SessionOptions};
use crate::cli::{DemoOptions, GlobalOptions};
use crate::exit::Exit;
use crate::gateway::{ChatGateway, GatewayObservers};
use crate::output;
use crate::wrap;
use house::{DemoHouse, SimulatedSpeakers};
use view::HouseView;

const SENTENCES: [&str; 8] = [
    "turn on the kitchen light",
    "how warm is the bedroom",
    "which lights are on",
    "dim the living room lamp to 30 percent",
    "activate the movie night scene",
    "lock the front door",
    "what is 12% of 80",
    "what time is it in Tokyo",
];

// Bytes of a script.
const MAX_SCRIPT_BYTES: u64 = 1 << 20;

pub(crate) fn run(global: &GlobalOptions, options: &DemoOptions) -> anyhow::Result<Exit> {
    let script = options.script.as_deref().map(read_script).transpose()?;
    let resume = options.resume.file.as_deref();
    let observers = GatewayObservers::default();
    let mut session_options = SessionOptions::new("toolgate demo").resuming(resume);
    session_options.observers = Some(&observers);
    session_options.is_demo = true;
    session_options.services.sounding = Some(Arc::new(SimulatedSpeakers::default()));
    let session = ChatSession::new(global, &options.model, session_options)?;
    block_on_threads(async {
        // No simulated events during a script, so that its answers are reproducible.
        let house = DemoHouse::start(script.is_none()).await?;
        let servers = vec![house.server()?];
        let view = HouseView::new(house.house.clone());
        // A script runs unattended, so it gets no dashboard.
        let gateway = match script.is_none() {
            true => Some(ChatGateway::listen(observers).await?),
            false => None,
        };
        let dashboard = gateway.as_ref().map(ChatGateway::url);
        if let Some(url) = &dashboard {
            tracing::info!("dashboard at {url}");
        }
        if output::is_interactive() {
            introduce(&house, &view, dashboard.as_deref());
        }
        if let Some(url) = dashboard.as_deref().filter(|_| options.open) {
            open(url);
        }
        let setup = ChatSetup {
            source: script.map_or_else(LineSource::stdin, LineSource::Script),
            resume,
            hook: Some(Box::new(view)),
            gateway,
            // The house isn't part of the configuration.
            follows_config: false,
        };
        let exit = chat::converse(&session, servers, setup).await;
        house.stop().await;
        exit
    })?
}

fn read_script(path: &Path) -> anyhow::Result<Vec<String>> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        let mut stdin = std::io::stdin().lock().take(MAX_SCRIPT_BYTES + 1);
        stdin
            .read_to_string(&mut text)
            .context("cannot read stdin")?;
        text
    } else {
        let shown = path.display();
        std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?
    };
    if text.len() as u64 > MAX_SCRIPT_BYTES {
        bail!("the script is larger than {} MiB", MAX_SCRIPT_BYTES >> 20);
    }
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

fn open(url: &str) {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let nothing = std::process::Stdio::null;
    let started = std::process::Command::new(opener)
        .arg(url)
        .stdin(nothing())
        .stdout(nothing())
        .stderr(nothing())
        .spawn();
    match started {
        // Reaped on a thread, so that it leaves no zombie behind.
        Ok(mut browser) => drop(std::thread::spawn(move || browser.wait())),
        Err(error) => output::print_note(&format!("cannot open {url} ({opener}: {error})")),
    }
}

/// Prints the banner. Together with the prompt it has to fit 24 lines of 80 columns.
fn introduce(house: &DemoHouse, view: &HouseView, dashboard: Option<&str>) {
    let (bold, dim) = (anstyle::Style::new().bold(), anstyle::Style::new().dimmed());
    let dashboard = dashboard.map(|url| format!("; live at {url}"));
    let dashboard = dashboard.unwrap_or_default();
    output::print_to_stderr(&format!("{bold}A simulated house{bold:#}{dashboard}"));
    let rooms = view.rooms().into_iter().map(|(room, devices)| {
        let devices = devices.iter().map(String::as_str);
        (room, dotted(devices))
    });
    print_rows(&rooms.collect::<Vec<_>>(), 2);
    let sentences = dotted(SENTENCES);
    print_rows(&[(format!("{bold}Try{bold:#}"), sentences)], 0);
    let address = house.broker.addr();
    let (host, port) = (address.ip(), address.port());
    let more = [
        (
            "With a model",
            "toolgate demo --provider ollama (or anthropic, openai)".to_owned(),
        ),
        (
            "Your own house",
            "toolgate add -e MQTT_BROKER_URL=mqtt://localhost:1883 zwave -- toolgate zwave-mcp-server"
                .to_owned(),
        ),
        (
            "MQTT traffic",
            format!("mosquitto_sub -h {host} -p {port} -v -t 'zwave/#'"),
        ),
    ];
    let more = more.map(|(title, text)| (format!("{dim}{title}{dim:#}"), text));
    print_rows(&more, 0);
    output::print_to_stderr("");
}

fn print_rows(rows: &[(String, String)], indent: usize) {
    let lines = wrap::definition_list(rows, indent, output::stderr_width());
    output::print_to_stderr(&lines.replace(NO_BREAK, " "));
}

// Keeps the words of an item on one line.
const NO_BREAK: char = '\u{a0}';

fn dotted<'a>(things: impl IntoIterator<Item = &'a str>) -> String {
    let things = things.into_iter();
    let glued = things.map(|thing| thing.replace(' ', &NO_BREAK.to_string()));
    glued.collect::<Vec<_>>().join(&format!("{NO_BREAK}· "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_its_lines_without_comments() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script");
        std::fs::write(&path, "# first\n\n turn on the light \r\n/quit\n").unwrap();
        assert_eq!(read_script(&path).unwrap(), ["turn on the light", "/quit"]);
        assert!(read_script(&folder.path().join("none")).is_err());
    }
}
