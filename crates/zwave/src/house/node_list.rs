//! Requests the gateway's list of nodes whenever it may have changed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;
use toolgate_net::{backoff, jitter};

use super::HouseState;
use crate::api::ApiFunction;
use crate::node::{BoundedList, DescribedNode, MAX_NODES};

/// How long events are collected: a starting gateway sends many, and one request covers them all.
const COLLECT_TIME: Duration = Duration::from_secs(2);
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(8);

pub(crate) async fn keep_node_list(inner: Arc<HouseState>) {
    let mut failures = 0;
    loop {
        let (due, first) = {
            let state = inner.state();
            let is_due = state.needs_nodes && state.is_current();
            (is_due, state.nodes_listed_at.is_none())
        };
        if !due {
            inner.wake.notified().await;
            continue;
        }
        if !first {
            sleep(COLLECT_TIME).await;
        }
        // Cleared before the request, so that an event during it leads to another request.
        inner.state().needs_nodes = false;
        type NodeList = BoundedList<DescribedNode, { MAX_NODES + 100 }>;
        let args = json!([]);
        match inner
            .request::<NodeList>(ApiFunction::GetNodes, &args)
            .await
        {
            Ok(nodes) => {
                inner.state().replace_nodes(nodes.unwrap_or_default().0);
                failures = 0;
                inner.notify_change();
            }
            Err(error) => {
                tracing::warn!(%error, "the Z-Wave gateway's list of nodes can't be read");
                inner.state().needs_nodes = true;
                let delay = backoff(FIRST_RETRY, failures, LAST_RETRY);
                sleep(jitter(delay, 0.75..1.25)).await;
                failures = failures.saturating_add(1);
            }
        }
    }
}
