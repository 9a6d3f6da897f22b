//! The three pipes of a server, which the host sends to the process that becomes it.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// The ends of the pipes that the server gets.
pub struct Pipes([OwnedFd; 3]);

impl Pipes {
    /// The ends for standard input, output and error.
    pub fn of(ends: [OwnedFd; 3]) -> Self {
        Self(ends)
    }

    /// Sends them through a socket, in which they stay until the last process takes them.
    pub fn send(&self, socket: &UnixStream) -> io::Result<()> {
        let fds = self.0.each_ref().map(AsFd::as_fd);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        sendmsg(socket, &[IoSlice::new(b"\n")], &mut control, SendFlags::empty())?;
        Ok(())
    }

    /// Makes them the standard streams of this process.
    pub fn put_in_place(self) -> io::Result<()> {
        let [input, output, errors] = self.0;
        rustix::stdio::dup2_stdin(input)?;
        rustix::stdio::dup2_stdout(output)?;
        rustix::stdio::dup2_stderr(errors)?;
        Ok(())
    }
}

/// The pipes that the host sent to this stage, through the socket that is its standard error.
pub fn received() -> Result<Pipes, String> {
    let missing = |what: &str| format!("the pipes of the server did not arrive: {what}");
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    recvmsg(io::stderr(), &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)
        .map_err(|error| missing(&error.to_string()))?;
    let fds: Vec<OwnedFd> = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    fds.try_into().map(Pipes).map_err(|fds: Vec<OwnedFd>| missing(&format!("{} came", fds.len())))
}
