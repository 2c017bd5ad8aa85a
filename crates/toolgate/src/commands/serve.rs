//! `toolgate serve`: all tools over HTTP.

use anyhow::Context;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use toolgate_core::LogObserver;
use toolgate_server::{Approvals, Feed, Gateway, Metrics, Parts, Stats};
use tracing::{info, warn};

use crate::cli::{Global, ServeOptions};
use crate::exit::Exit;
use crate::reload::{self, Reload};
use crate::servers::{self, Fleet};
use crate::signals::Signals;
use crate::wiring;

pub(crate) fn run(global: &Global, options: &ServeOptions) -> anyhow::Result<Exit> {
    let config = wiring::configuration(global)?;
    let tools = wiring::tools(&config);
    wiring::warn_about(&config, &tools);
    for unset in config.unset_for_tools() {
        warn!("{unset}");
    }
    wiring::warn_about_servers(&config);
    let mut settings = config.serve.clone();
    if let Some(bind) = options.bind {
        settings.bind = bind;
    }
    let (feed, stats, metrics) = (Feed::default(), Stats::default(), Metrics::default());
    let approvals = Approvals::default();
    let log = LogObserver::new(config.limits.slow_after).redactor(tools.redactor.clone());
    let executor = wiring::door(&config, &tools)
        .approver(approvals.clone())
        .observer(log)
        .observer(stats.clone())
        .observer(metrics.clone())
        .observer(feed.clone())
        .build();
    let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
    runtime.block_on(async {
        let mut signals = Signals::listen().context("cannot listen to signals")?;
        let bind = settings.bind;
        let listener = TcpListener::bind(bind)
            .await
            .with_context(|| format!("cannot listen on {bind}"))?;
        let fleet = Fleet::start(&config, &tools, servers::admit_unasked(&config), None);
        fleet.warn_of_untrusted();
        let gateway = Gateway::new(Parts {
            executor,
            servers: fleet.servers.clone(),
            feed,
            stats,
            metrics,
            approvals,
            redactor: tools.redactor.clone(),
            model: config.model.clone(),
            workshop: None,
            settings,
        });
        let reload = Reload::new(config, &tools, fleet.servers.clone());
        info!("listening on http://{bind}");
        let stop = CancellationToken::new();
        let mut serving = std::pin::pin!(toolgate_server::serve(gateway, listener, stop.clone()));
        let exit = tokio::select! {
            end = &mut serving => {
                end.context("the gateway broke")?;
                Exit::Failure
            }
            exit = signals.told() => exit,
            never = reload::followed(reload) => match never {},
        };
        stop.cancel();
        fleet.stop().await;
        Ok(exit)
    })
}
