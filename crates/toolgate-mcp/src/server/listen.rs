//! Answers `subscriptions/listen`, which lasts until the client or the server ends it.

use std::sync::Arc;

use serde_json::json;

use super::client_message::{ListenParams, RequestMeta, SubscriptionFilter};
use super::jsonrpc::{RequestError, RequestId, notification};
use super::list_watch::{ListChanges, ListWatch, send_list_changes};
use super::methods::{
    COMPLETE, MethodResult, RequestContext, RequestLifecycle, SERVER_INFO, other_revision_error,
};
use super::resource_updates::{ClientSubscriptions, send_updates};
use super::service::McpService;
use super::tasks::{TaskWatch, missing_capability};

impl McpService {
    pub(super) async fn listen(
        self: &Arc<Self>,
        id: &RequestId,
        params: ListenParams,
        meta: &RequestMeta,
        context: &RequestContext<'_>,
    ) -> Result<MethodResult, RequestError> {
        let (RequestLifecycle::SelfContained { .. }, Some(sink)) =
            (context.lifecycle, context.sink)
        else {
            return Err(other_revision_error());
        };
        let mut accepted = params.notifications;
        let tasks = match &mut accepted.task_ids {
            Some(_) if !meta.declares_tasks() => return Err(missing_capability()),
            Some(ids) => TaskWatch::new(self, ids, context).await,
            None => TaskWatch::default(),
        };
        if !self.offers_content() {
            accepted = SubscriptionFilter {
                tools_list_changed: accepted.tools_list_changed,
                task_ids: accepted.task_ids,
                ..SubscriptionFilter::default()
            };
        }
        let subscriptions = ClientSubscriptions::default();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| subscriptions.subscribe(self, uri).is_ok());
        }
        let watch = ListWatch::new(self);
        let mut meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
        let params = json!({ "_meta": &meta, "notifications": &accepted });
        let acknowledged = "notifications/subscriptions/acknowledged";
        sink.send(notification(acknowledged, params)).await;
        let wanted = accepted.list_changes();
        let params = json!({ "_meta": &meta });
        let announcing = async {
            tokio::select! {
                () = send_list_changes(watch, wanted, &params, sink), if wanted.any() => {}
                () = send_updates(self, &subscriptions, Some(&meta), sink) => {}
                () = tasks.send_updates(&meta, sink) => {}
            }
            // The client is gone; the transport ends the request.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = context.stop.cancelled() => {}
            () = context.ending.cancelled() => {}
            () = announcing => {}
        }
        meta[SERVER_INFO] = self.result_meta[SERVER_INFO].clone();
        let result = json!({ "resultType": COMPLETE, "_meta": meta });
        Ok(MethodResult::Json(result))
    }
}

impl SubscriptionFilter {
    fn list_changes(&self) -> ListChanges {
        ListChanges {
            tools: self.tools_list_changed == Some(true),
            resources: self.resources_list_changed == Some(true),
            prompts: self.prompts_list_changed == Some(true),
        }
    }
}
