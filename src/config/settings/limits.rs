//! The limits of Pods, of replies of models, and of commands.

use crate::config::settings::count;
use serde::Deserialize;
use std::num::NonZeroU32;

/// `pid_max` is 300 above the limit, because the kernel assigns the low process ids of a namespace
/// only once. So a lower limit would have little effect.
const FEWEST_PROCESSES: u32 = 301;
/// A shell and a compiler with its plugins open a few dozen files at once.
const FEWEST_FILES: u32 = 64;
/// A block is one line of the log, and a line is read up to [`crate::protocol::MAX_LINE`]: 1 MiB is
/// left for the JSON around the text.
const MAX_BLOCK_MIB: u64 = (crate::protocol::MAX_LINE as u64 >> 20) - 1;
/// A reply is in memory several times while it is processed.
const MAX_REPLY_MIB: u64 = 1024;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Requests to a model in one run.
    pub max_turns: NonZeroU32,
    /// The most generations below a Pod that a person created.
    pub depth: NonZeroU32,
    /// The most live Pods below a Pod that a person created.
    pub live_children: NonZeroU32,
    /// The most messages that wait in the mailbox of one Pod. Child events are not counted.
    pub mailbox: NonZeroU32,
    /// The largest reply of a model, in MiB of log.
    pub reply_mib: Mebibytes<MAX_REPLY_MIB>,
    /// The largest block of a reply, in MiB of log.
    pub block_mib: Mebibytes<MAX_BLOCK_MIB>,
    /// The most that a model may write as the arguments of one tool call, in MiB of log.
    pub argument_mib: Mebibytes<MAX_BLOCK_MIB>,
    /// Processes and threads of one command.
    pub processes: AtLeast<FEWEST_PROCESSES>,
    /// MiB of memory of one process of a command; 0 = no limit.
    pub memory_mib: u32,
    /// Open files and sockets of one process of a command.
    pub open_files: AtLeast<FEWEST_FILES>,
    /// MiB of one file that a command writes; 0 = no limit.
    pub file_mib: u32,
    /// The size of a Pod's `/tmp`, in MiB.
    pub tmp_mib: NonZeroU32,
    /// The size of a Pod's layers over the caches of toolchains, in MiB.
    pub cache_mib: NonZeroU32,
    /// The size of a command's home directory without the paths granted in it, in MiB.
    pub home_mib: NonZeroU32,
    /// The size of a command's `/dev/shm`, in MiB.
    pub shm_mib: NonZeroU32,
}

/// A number that is at least `LEAST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u32")]
pub struct AtLeast<const LEAST: u32>(u32);

impl<const LEAST: u32> AtLeast<LEAST> {
    pub fn get(self) -> u32 {
        self.0
    }
}

impl<const LEAST: u32> TryFrom<u32> for AtLeast<LEAST> {
    type Error = String;

    fn try_from(value: u32) -> Result<Self, Self::Error> {
        if value >= LEAST {
            Ok(Self(value))
        } else {
            Err(format!("expected a number of {LEAST} or more"))
        }
    }
}

/// A size in MiB, from 1 to `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u64")]
pub struct Mebibytes<const MOST: u64>(u64);

impl<const MOST: u64> Mebibytes<MOST> {
    pub fn bytes(self) -> u64 {
        self.0 << 20
    }
}

impl<const MOST: u64> TryFrom<u64> for Mebibytes<MOST> {
    type Error = String;

    fn try_from(value: u64) -> Result<Self, Self::Error> {
        if (1..=MOST).contains(&value) {
            Ok(Self(value))
        } else {
            Err(format!("expected a number from 1 to {MOST}"))
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: const { count(200) },
            depth: const { count(4) },
            live_children: const { count(16) },
            mailbox: const { count(1000) },
            reply_mib: Mebibytes(128),
            block_mib: Mebibytes(60),
            argument_mib: Mebibytes(56),
            processes: AtLeast(4096),
            memory_mib: 0,
            open_files: AtLeast(65_536),
            file_mib: 16_384,
            tmp_mib: const { count(1024) },
            cache_mib: const { count(8192) },
            home_mib: const { count(256) },
            shm_mib: const { count(256) },
        }
    }
}
