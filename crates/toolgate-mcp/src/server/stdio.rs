//! The process's own stdin and stdout as asynchronous streams.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{UnixStream, unix::pipe};

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Pipes and sockets are used without a thread that hands over every message: that would double the time of a call.
/// Must be called within a runtime.
pub(super) fn open() -> (Reader, Writer) {
    (reader(), writer())
}

/// A pipe is opened once more: not to block is then a habit of this opening only, not of whoever else has the pipe.
fn reader() -> Reader {
    if let Ok(pipe) = pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
        return Box::new(pipe);
    }
    match socket(&io::stdin()) {
        Ok(socket) => Box::new(socket),
        Err(_) => Box::new(tokio::io::stdin()),
    }
}

fn writer() -> Writer {
    if let Ok(pipe) = pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
        return Box::new(pipe);
    }
    match socket(&io::stdout()) {
        Ok(socket) => Box::new(socket),
        Err(_) => Box::new(tokio::io::stdout()),
    }
}

/// Node.js starts its children on sockets. They can not be opened once more, but this end of the pair is ours alone.
fn socket(stream: &impl AsFd) -> io::Result<UnixStream> {
    let copy = File::from(stream.as_fd().try_clone_to_owned()?);
    if !copy.metadata()?.file_type().is_socket() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let socket = std::os::unix::net::UnixStream::from(OwnedFd::from(copy));
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}
