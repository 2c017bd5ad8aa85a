//! Something to look at while a call lasts.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use toolgate_core::Progress;

/// Shorter calls need no spinner.
const PATIENCE: Duration = Duration::from_millis(300);

/// A line on stderr with the elapsed time. On anything but a terminal it draws nothing.
#[derive(Clone)]
pub(crate) struct Spinner(ProgressBar);

impl Spinner {
    pub(crate) fn new(title: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(title.to_owned());
        Self(bar)
    }

    /// Starts to turn once the call has lasted a little.
    pub(crate) async fn turn(&self) -> std::convert::Infallible {
        tokio::time::sleep(PATIENCE).await;
        self.0.enable_steady_tick(Duration::from_millis(100));
        std::future::pending().await
    }

    /// Shows what the tool says of its progress.
    pub(crate) fn show(&self, progress: &Progress) {
        let share = progress
            .total
            .map(|total| format!("{}/{total} ", progress.done));
        let message = progress.message.as_deref().map(toolgate_core::escape);
        self.0.set_message(format!(
            "{}{}",
            share.unwrap_or_default(),
            message.unwrap_or_default()
        ));
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
