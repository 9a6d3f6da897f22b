//! The log as a whole: written, cut, damaged, read back.

mod bench;
mod fold;
mod journal;
mod page;
mod recovery;
mod replay;
mod rewind;
