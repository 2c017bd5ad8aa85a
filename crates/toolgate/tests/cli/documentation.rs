//! The examples of the documentation work as shown.

use std::path::{Path, PathBuf};

use crate::gateway::{RunningServe, wait_until};
use crate::run::ProgramRun;

const ADDING: &str = include_str!("../../../../docs/adding-a-tool.md");
const CONFIGURATION: &str = include_str!("../../../../docs/configuration.md");
const DEPLOYING: &str = include_str!("../../../../docs/deploy.md");

/// The fenced blocks of one language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let opening = format!("```{language}\n");
    text.split(opening.as_str())
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect()
}

#[test]
fn every_configuration_on_the_page_works() {
    let blocks = blocks(ADDING, "json");
    assert!(blocks.len() >= 2);
    for block in &blocks {
        let done = ProgramRun::new(["list"]).config(block).done();
        assert_eq!((done.stderr.as_str(), done.code), ("", Some(0)), "{block}");
    }
    let envelope = ProgramRun::new(["call", "get_weather", "city=Oslo"])
        .config(blocks[0])
        .json();
    assert_eq!(envelope["result"]["temperature"], 21);
}

#[test]
fn documented_gateway_configurations_cause_no_warning() {
    for page in [CONFIGURATION, DEPLOYING] {
        let blocks = blocks(page, "json");
        assert!(blocks.len() >= 2);
        for block in blocks {
            let run = ProgramRun::new(["--config", "t.json", "list"]).file("t.json", block);
            let done = run.done();
            // Example servers are disabled, and that is reported.
            let mut words = done.stderr.lines();
            assert!(words.all(|line| line.contains("is disabled")), "{done:?}");
            assert_eq!(done.code, Some(0), "{block}");
        }
    }
}

#[test]
fn the_documented_container_is_healthy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ignored = std::fs::read_to_string(root.join(".dockerignore")).unwrap();
    assert!(blocks(DEPLOYING, "text").contains(&ignored.as_str()));
    let check = blocks(DEPLOYING, "dockerfile")[0];
    let check = check
        .lines()
        .find_map(|line| line.strip_prefix("HEALTHCHECK CMD "));
    let check: Vec<String> = serde_json::from_str(check.unwrap()).unwrap();
    let token = r#"{ "serve": { "tokens": [{ "token": "0123456789abcdef0123456789abcdef" }] } }"#;
    let run = ProgramRun::new(["--config", "t.json", "serve"]).file("t.json", token);
    let gateway = RunningServe::start(run);
    let url = gateway.url();
    let words = check[1..].iter().map(|word| match word.as_str() {
        "http://localhost:7460" => url.as_str(),
        other => other,
    });
    let words: Vec<&str> = words.collect();
    assert!(words.contains(&url.as_str()), "{words:?}");
    wait_until("it is healthy", || {
        ProgramRun::new([]).args(&words).done().code == Some(0)
    });
}

#[test]
fn caches_of_the_unit_are_in_a_folder_that_may_be_written() {
    let unit = blocks(DEPLOYING, "ini")[0];
    let value = |key: &str| {
        let found = unit.split_whitespace().find_map(|word| {
            let setting = word.strip_prefix("Environment=").unwrap_or(word);
            setting.strip_prefix(key)?.strip_prefix('=')
        });
        found.unwrap_or_else(|| panic!("no {key}"))
    };
    // Everything else is read-only for the program and its servers.
    let (cache, state) = (
        format!("/var/cache/{}", value("CacheDirectory")),
        format!("/var/lib/{}", value("StateDirectory")),
    );
    assert!(unit.contains("ProtectSystem=strict"));
    for (variable, folder) in [
        ("XDG_CACHE_HOME", &cache),
        ("npm_config_cache", &cache),
        ("HOME", &state),
    ] {
        assert!(value(variable).starts_with(folder.as_str()), "{variable}");
    }
}

#[test]
fn documents_name_the_default_ollama_model() {
    let usual = toolgate_models::Provider::Ollama.default_model();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (file, before, after) in [
        (
            "crates/toolgate-server/assets/js/views/chat.js",
            "command('ollama pull ",
            "')",
        ),
        (
            "crates/toolgate/src/commands/init.jsonc",
            "\"provider\": \"ollama\", // or anthropic, gemini, intents, openai (also llama.cpp, vLLM etc.)\n  //   \"name\": \"",
            "\"",
        ),
        (
            "docs/models.md",
            "| `OLLAMA_HOST`, `OLLAMA_API_KEY` | `",
            "`",
        ),
    ] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let named: Vec<&str> = text
            .split(before)
            .skip(1)
            .filter_map(|rest| rest.split(after).next())
            .collect();
        assert_eq!(named, [usual], "{file}");
    }
}

#[test]
fn every_documented_rust_block_is_compiled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = [
        "examples/own_tool.rs",
        "crates/toolgate-tools/src/builtin/echo.rs",
    ]
    .map(|file| std::fs::read_to_string(root.join(file)).unwrap());
    let blocks = blocks(ADDING, "rust");
    assert!(blocks.len() >= 3);
    for block in blocks {
        assert!(
            files.iter().any(|file| file.contains(block.trim_end())),
            "stands nowhere:\n{block}"
        );
    }
}

#[test]
fn every_link_between_our_pages_resolves() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .map(|page| root.join(page))
        .to_vec();
    pages.extend(
        std::fs::read_dir(root.join("docs"))
            .unwrap()
            .filter_map(|entry| Some(entry.ok()?.path())),
    );
    for page in pages
        .iter()
        .filter(|page| page.extension().is_some_and(|extension| extension == "md"))
    {
        let text = std::fs::read_to_string(page).unwrap();
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let path = link.split('#').next().unwrap_or_default();
            let is_ours = !path.is_empty() && !link.contains("://");
            assert!(
                !is_ours || page.parent().unwrap().join(path).exists(),
                "{}: {link}",
                page.display()
            );
        }
    }
}
