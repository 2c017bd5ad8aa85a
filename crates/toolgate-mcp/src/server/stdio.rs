//! The process's own stdin and stdout as asynchronous streams.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{UnixStream, unix::pipe};

type StdinReader = Box<dyn AsyncRead + Send + Unpin>;
type StdoutWriter = Box<dyn AsyncWrite + Send + Unpin>;

/// Opens stdin and stdout. Pipes and sockets bypass tokio's blocking thread, which would double the
/// time of a call. Must be called within a tokio runtime.
pub(super) fn open() -> (StdinReader, StdoutWriter) {
    (open_stdin(), open_stdout())
}

// The pipe is reopened because non-blocking mode would otherwise affect every
// process that shares it.
fn open_stdin() -> StdinReader {
    if let Ok(pipe) = pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
        return Box::new(pipe);
    }
    match duplicate_socket(&io::stdin()) {
        Ok(socket) => Box::new(socket),
        Err(_) => Box::new(tokio::io::stdin()),
    }
}

fn open_stdout() -> StdoutWriter {
    if let Ok(pipe) = pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
        return Box::new(pipe);
    }
    match duplicate_socket(&io::stdout()) {
        Ok(socket) => Box::new(socket),
        Err(_) => Box::new(tokio::io::stdout()),
    }
}

// Node.js connects its child processes by sockets. Those can't be reopened, but our end isn't
// shared.
fn duplicate_socket(stream: &impl AsFd) -> io::Result<UnixStream> {
    let copy = File::from(stream.as_fd().try_clone_to_owned()?);
    if !copy.metadata()?.file_type().is_socket() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let socket = std::os::unix::net::UnixStream::from(OwnedFd::from(copy));
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}
