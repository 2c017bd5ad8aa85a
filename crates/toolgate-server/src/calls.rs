//! One call as the API shows it.

use std::time::SystemTime;

use serde::Serialize;
use utoipa::ToSchema;

use crate::api::tools::{ToolForm, ToolInfo};

/// Everything that is known of one call.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = CallDetail)]
pub(crate) struct CallPage {
    #[serde(flatten)]
    pub(crate) call: toolgate_journal::CallDetail,
    /// The tool as it is now, if it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<ToolForm>)]
    pub(crate) tool_definition: Option<ToolInfo>,
}

/// RFC 3339 in UTC with milliseconds.
pub(crate) fn timestamp(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or_default();
    format!("{time:.3}")
}
