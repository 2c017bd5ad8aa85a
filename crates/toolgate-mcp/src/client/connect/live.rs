//! Implements the interface of a connected server for supervision.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio_util::task::AbortOnDropHandle;
use toolgate_core::Redactor;

use super::super::connection::{SupervisedConnection, ToolOffer};
use super::super::content::list_content;
use super::super::handshake::explain;
use super::super::link::ServerLink;
use super::super::session::{ClientSession, SessionError};
use super::super::transport::SessionEnd;
use super::super::{listing, tool};
use super::changes::ChangeSubscription;
use crate::{ProtocolEra, ServerSettings};

pub(super) struct LiveConnection {
    pub(super) session: Arc<ClientSession>,
    pub(super) era: ProtocolEra,
    pub(super) pid: Option<u32>,
    pub(super) settings: ServerSettings,
    pub(super) link: ServerLink,
    pub(super) redactor: Redactor,
    pub(super) _listener: ChangeSubscription,
    pub(super) _log_level: Option<AbortOnDropHandle<()>>,
}

impl SupervisedConnection for LiveConnection {
    fn era(&self) -> ProtocolEra {
        self.era
    }

    fn revision(&self) -> Option<String> {
        self.session.revision()
    }

    fn pid(&self) -> Option<u32> {
        self.pid
    }

    fn attach(&self, link: &ServerLink) {
        link.set_up(Arc::clone(&self.session));
    }

    fn list_everything(&self) -> BoxFuture<'_, Result<ToolOffer, String>> {
        Box::pin(async {
            let is_ttl_refresh = self.session.take_routine_listing();
            let listed = list_everything(
                &self.session,
                &self.settings,
                &self.link,
                &self.redactor,
                None,
            )
            .await;
            let listed = listed.map(|offer| ToolOffer {
                is_ttl_refresh,
                ..offer
            });
            listed.map_err(|failure| explain(&failure.into()).to_string())
        })
    }

    fn lists_changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.session.lists_changed())
    }

    fn ended(&self) -> BoxFuture<'_, SessionEnd> {
        Box::pin(self.session.ended())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.session.close())
    }
}

/// Lists the server's tools, resources and prompts; the last two within the limit, or not at all.
pub(super) async fn list_everything(
    session: &Arc<ClientSession>,
    settings: &ServerSettings,
    link: &ServerLink,
    redactor: &Redactor,
    content_limit: Option<Duration>,
) -> Result<ToolOffer, SessionError> {
    session.begin_listing();
    let listed = listing::list_tools(&settings.name, session).await?;
    let content = list_content(&settings.name, session, redactor, content_limit).await?;
    let offer = tool::tools_from_listing(listed, settings, link, redactor).await;
    Ok(ToolOffer { content, ..offer })
}
