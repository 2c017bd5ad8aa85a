//! `toolgate demo`: everything at once, in a house that is not there.
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

use super::chat::{self, Company, Source};
use crate::cli::{DemoOptions, Global};
use crate::exit::Exit;
use crate::gateway::{Beside, Watch};
use crate::say;
use crate::talk::{Occasion, Setting};
use crate::wrap;
use house::{Demonstration, SimulatedSpeakers};
use view::View;

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

/// A longer script is none.
const LONGEST: u64 = 1 << 20;

pub(crate) fn run(global: &Global, options: &DemoOptions) -> anyhow::Result<Exit> {
    let script = options.script.as_deref().map(lines).transpose()?;
    let resume = options.resume.file.as_deref();
    let watch = Watch::default();
    let mut occasion = Occasion::new("toolgate demo").resuming(resume);
    occasion.watch = Some(&watch);
    occasion.is_play = true;
    occasion.services.sounding = Some(Arc::new(SimulatedSpeakers::default()));
    let setting = Setting::new(global, &options.model, occasion)?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
    let exit = runtime.block_on(async {
        // Where nobody waits, nothing happens by itself: the same script has the same answers.
        let demonstration = Demonstration::start(script.is_none()).await?;
        let servers = vec![demonstration.server()?];
        let view = View::new(demonstration.house.clone());
        // A script has no reader who could look at a page.
        let gateway = match script.is_none() {
            true => Some(Beside::listen(watch).await?),
            false => None,
        };
        let dashboard = gateway.as_ref().map(Beside::url);
        if let Some(url) = &dashboard {
            tracing::info!("dashboard at {url}");
        }
        if say::is_followed() {
            introduce(&demonstration, &view, dashboard.as_deref());
        }
        if let Some(url) = dashboard.as_deref().filter(|_| options.open) {
            open(url);
        }
        let company = Company {
            source: script.map_or_else(Source::stdin, Source::Script),
            resume,
            onlooker: Some(Box::new(view)),
            gateway,
            // Its house is not in the configuration.
            follows: false,
        };
        let exit = chat::converse(&setting, servers, company).await;
        demonstration.stop().await;
        exit
    });
    runtime.shutdown_background();
    exit
}

/// The lines of a script that say something; `#` begins a remark.
fn lines(path: &Path) -> anyhow::Result<Vec<String>> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        let mut stdin = std::io::stdin().lock().take(LONGEST + 1);
        stdin
            .read_to_string(&mut text)
            .context("cannot read stdin")?;
        text
    } else {
        let shown = path.display();
        std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?
    };
    if text.len() as u64 > LONGEST {
        bail!("a script has at most {} MiB", LONGEST >> 20);
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
        // Waited for elsewhere, so that it leaves nothing behind.
        Ok(mut browser) => drop(std::thread::spawn(move || browser.wait())),
        Err(error) => say::note(&format!("cannot open {url} ({opener}: {error})")),
    }
}

/// What there is to see and to try. Together with the prompt it fits 24 lines of 80 columns.
fn introduce(demonstration: &Demonstration, view: &View, dashboard: Option<&str>) {
    let (bold, dim) = (anstyle::Style::new().bold(), anstyle::Style::new().dimmed());
    let dashboard = dashboard.map(|url| format!("; live at {url}"));
    let dashboard = dashboard.unwrap_or_default();
    say::line(&format!("{bold}A simulated house{bold:#}{dashboard}"));
    let rooms = view.rooms().into_iter().map(|(room, devices)| {
        let devices = devices.iter().map(String::as_str);
        (room, dotted(devices))
    });
    print_rows(&rooms.collect::<Vec<_>>(), 2);
    let sentences = dotted(SENTENCES);
    print_rows(&[(format!("{bold}Try{bold:#}"), sentences)], 0);
    let address = demonstration.broker.addr();
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
    say::line("");
}

fn print_rows(rows: &[(String, String)], indent: usize) {
    let lines = wrap::definition_list(rows, indent, say::side_width());
    say::line(&lines.replace(NO_BREAK, " "));
}

/// Between words that stay in one line.
const NO_BREAK: char = '\u{a0}';

/// Things with a dot between them, each of which stays in one line.
fn dotted<'a>(things: impl IntoIterator<Item = &'a str>) -> String {
    let things = things.into_iter();
    let glued = things.map(|thing| thing.replace(' ', &NO_BREAK.to_string()));
    glued.collect::<Vec<_>>().join(&format!("{NO_BREAK}· "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_its_lines_without_remarks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script");
        std::fs::write(&path, "# first\n\n turn on the light \r\n/quit\n").unwrap();
        assert_eq!(lines(&path).unwrap(), ["turn on the light", "/quit"]);
        assert!(lines(&folder.path().join("none")).is_err());
    }
}
