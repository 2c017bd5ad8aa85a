//! The gateway's list of nodes, asked for again whenever it may have changed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;
use toolgate_net::{backoff, jittered};

use super::Inner;
use crate::api::Function;
use crate::node::{Bounded, DescribedNode, MAX_NODES};

/// Events come in flocks when a gateway starts: one question is enough for all of them.
const GATHER: Duration = Duration::from_secs(2);
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(8);

pub(crate) async fn ask_for_nodes(inner: Arc<Inner>) {
    let mut failures = 0;
    loop {
        let (due, first) = {
            let state = inner.state();
            (
                state.ask_again && state.is_current(),
                state.answered.is_none(),
            )
        };
        if !due {
            inner.wake.notified().await;
            continue;
        }
        if !first {
            sleep(GATHER).await;
        }
        inner.state().ask_again = false;
        let answer = inner
            .ask::<Bounded<DescribedNode, { MAX_NODES + 100 }>>(Function::GetNodes, &json!([]))
            .await;
        match answer {
            Ok(nodes) => {
                inner.state().take_nodes(nodes.unwrap_or_default().0);
                failures = 0;
                inner.changed();
            }
            Err(error) => {
                tracing::warn!(%error, "the nodes of the Z-Wave gateway are not known");
                inner.state().ask_again = true;
                let delay = backoff(FIRST_RETRY, failures, LAST_RETRY);
                sleep(jittered(delay, 0.75..1.25)).await;
                failures = failures.saturating_add(1);
            }
        }
    }
}
