//! Talking to a Pod's own socket, also one of the predecessor: drain the alerts and the snapshot,
//! then send.
