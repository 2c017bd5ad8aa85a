use toolgate_mcp::{ServerState, ServersOptions};

use super::*;

/// A hang guard, ten times what it should take.
const PATIENCE: Duration = Duration::from_secs(20);

struct Running {
    folder: tempfile::TempDir,
    manager: Arc<ToolManager>,
    servers: Servers,
    _task: tokio::task::JoinHandle<Infallible>,
}

fn mock(name: &str) -> String {
    format!(
        r#"{{ "name": "{name}", "description": "d", "parameters": {{}}, "implementation": {{ "type": "mock", "mock_response": 1 }} }}"#
    )
}

/// A configuration whose servers are there but never started.
fn text(tool: &str, server: &str) -> String {
    let tool = mock(tool);
    format!(
        r#"{{ "tools": [{tool}], "mcpServers": {{ "{server}": {{ "command": "x", "disabled": true }} }} }}"#
    )
}

impl Running {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toolgate.json");
        std::fs::write(&path, text("first", "a")).unwrap();
        let config = Config::read(&path, &|_| None).unwrap();
        let tools = wiring::tools(&config);
        let manager = Arc::clone(&tools.manager);
        let servers = Servers::new(Arc::clone(&manager), ServersOptions::default());
        servers.apply(servers::admit_unasked(&config).settings);
        let reload = Reload::new(config, &tools, servers.clone())
            .unwrap()
            .unwrap();
        Self {
            folder,
            manager,
            servers,
            _task: tokio::spawn(reload.run()),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("toolgate.json")
    }

    async fn has(&self, tool: &str, server: &str) {
        let mut changed = self.servers.changed();
        let both = async {
            loop {
                let listed = self.servers.status();
                let is_there = listed.len() == 1
                    && listed[0].name == server
                    && listed[0].state == ServerState::Disabled;
                if is_there && self.manager.find(tool).is_some() {
                    return;
                }
                changed.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, both)
            .await
            .expect("a hang guard");
    }
}

#[tokio::test]
async fn an_edited_file_is_applied_however_the_editor_writes_it() {
    let running = Running::start();
    running.has("first", "a").await;
    // In place.
    std::fs::write(running.path(), text("second", "b")).unwrap();
    running.has("second", "b").await;
    assert!(running.manager.find("first").is_none());
    // As another file that takes its name.
    let beside = running.folder.path().join("toolgate.json.new");
    for (tool, server) in [("third", "c"), ("fourth", "d")] {
        std::fs::write(&beside, text(tool, server)).unwrap();
        std::fs::rename(&beside, running.path()).unwrap();
        running.has(tool, server).await;
    }
}

#[tokio::test]
async fn a_broken_file_changes_nothing_until_it_is_mended() {
    let running = Running::start();
    let mut reload = {
        let config = Config::read(&running.path(), &|_| None).unwrap();
        let tools = Tools {
            health: toolgate_mcp::ServerHealth::default(),
            recent: toolgate_journal::RecentCalls::default(),
            sounding: None,
            redactor: toolgate_core::Redactor::default(),
            manager: Arc::clone(&running.manager),
            problems: Vec::new(),
        };
        Reload::new(config, &tools, running.servers.clone())
            .unwrap()
            .unwrap()
    };
    for broken in ["{ nope", "{ \"limts\": {} }", "{ \"mcpServers\": [] }"] {
        std::fs::write(running.path(), broken).unwrap();
        reload.apply();
        running.has("first", "a").await;
    }
    std::fs::remove_file(running.path()).unwrap();
    reload.apply();
    running.has("first", "a").await;
    std::fs::write(running.path(), text("mended", "m")).unwrap();
    running.has("mended", "m").await;
}
