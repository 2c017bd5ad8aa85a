//! Runs the server until the client leaves or a signal arrives.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use toolgate_core::{Limits, ToolExecutor, ToolManager};
use toolgate_home::{HomeAccess, ZWAVE, home_tools};
use toolgate_mcp::{McpServer, ServeOptions};
use toolgate_mqtt::{Mqtt, MqttClient};
use tracing::{debug, info, warn};
use zwave::House;

use crate::offline_mqtt::OfflineMqtt;
use crate::options::{ResolvedSettings, ServerOptions, environment_variable};

// How long running calls may take to finish after a signal; a second signal ends the wait.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Longer calls are logged as slow. Shorter ones may only wait for a device to confirm.
const SLOW_CALL: Duration = Duration::from_secs(12);

const INSTRUCTIONS: &str = "\
Reads and controls the Z-Wave devices of a house. Call list_zwave_devices for the names; a device is found by its name, or by name \
and room. A result reports what happened, not only what was sent: do not repeat a command whose outcome is unknown without \
asking the person.";

/// Serves the MCP client on stdin and stdout. Returns when the client closes stdin, on
/// SIGTERM and on Ctrl-C.
pub fn run(options: &ServerOptions) -> io::Result<()> {
    let settings = options.resolve(environment_variable);
    for warning in &settings.warnings {
        warn!("{warning}");
    }
    debug!(house = ?settings.house, locks = settings.locks, "settings");
    if io::stdin().is_terminal() {
        warn!("an MCP client is expected on stdin; Ctrl-D ends this");
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let end = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let server = build_server(&open_home(settings))?;
        let stop = CancellationToken::new();
        let mut serving = std::pin::pin!(server.serve_stdio(stop.clone()));
        tokio::select! {
            end = &mut serving => return end,
            () = shutdown_requested(&mut interrupt, &mut terminate) => {}
        }
        stop.cancel();
        tokio::select! {
            _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, serving) => {}
            () = shutdown_requested(&mut interrupt, &mut terminate) => {}
        }
        Ok(())
    });
    // A thread that is still blocked on stdin must not delay the exit.
    runtime.shutdown_background();
    end
}

async fn shutdown_requested(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// Starts to connect without waiting, so that the client's handshake is answered at once.
fn open_home(settings: ResolvedSettings) -> HomeAccess {
    let mqtt: Arc<dyn Mqtt> = match settings.broker {
        Ok(broker) => {
            info!(
                broker = broker.address(),
                prefix = settings.house.prefix,
                "connecting to the Z-Wave home"
            );
            Arc::new(MqttClient::open(broker))
        }
        Err(reason) => {
            warn!("{reason}");
            Arc::new(OfflineMqtt::new(reason))
        }
    };
    let house = Arc::new(House::open(mqtt, settings.house));
    HomeAccess::new(house, &ZWAVE, settings.locks)
}

pub(crate) fn build_server(home: &HomeAccess) -> io::Result<McpServer> {
    let manager = Arc::new(ToolManager::new());
    manager.add_all(home_tools(home).map_err(io::Error::other)?);
    let mut limits = Limits::default();
    limits.slow_after = SLOW_CALL;
    let executor = ToolExecutor::builder(manager).limits(limits).build();
    let mut options = ServeOptions::new(ZWAVE.server(), env!("CARGO_PKG_VERSION"));
    options.instructions = Some(INSTRUCTIONS.to_owned());
    Ok(McpServer::new(executor, options))
}
