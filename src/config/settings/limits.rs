//! The limits of Pods, of replies of models, and of commands.

use crate::config::settings::count;
use serde::de::{self, Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtLeast<const LEAST: u32>(u32);

impl<const LEAST: u32> AtLeast<LEAST> {
    pub fn get(self) -> u32 {
        self.0
    }
}

impl<'de, const LEAST: u32> Deserialize<'de> for AtLeast<LEAST> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let range = Range { least: LEAST.into(), most: u32::MAX.into() };
        let number = u32::try_from(from.deserialize_u64(range)?);
        number.map(Self).map_err(D::Error::custom)
    }
}

/// A size in MiB, from 1 to `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mebibytes<const MOST: u64>(u64);

impl<const MOST: u64> Mebibytes<MOST> {
    pub fn bytes(self) -> u64 {
        self.0 << 20
    }
}

impl<'de, const MOST: u64> Deserialize<'de> for Mebibytes<MOST> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_u64(Range { least: 1, most: MOST }).map(Self)
    }
}

/// Reads a whole number of a range; its errors name the range.
struct Range {
    least: u64,
    most: u64,
}

impl Visitor<'_> for Range {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {} to {}", self.least, self.most)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        if (self.least..=self.most).contains(&number) {
            return Ok(number);
        }
        Err(E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        let negative = |_| E::invalid_value(Unexpected::Signed(number), &self);
        u64::try_from(number).map_err(negative).and_then(|number| self.visit_u64(number))
    }
}

impl Limits {
    /// The default of a key of `[limits]`.
    pub fn default_of(key: &str) -> Option<u64> {
        let of = Self::default();
        let number = match key {
            "max_turns" => of.max_turns.get(),
            "depth" => of.depth.get(),
            "live_children" => of.live_children.get(),
            "mailbox" => of.mailbox.get(),
            "reply_mib" => return Some(of.reply_mib.0),
            "block_mib" => return Some(of.block_mib.0),
            "argument_mib" => return Some(of.argument_mib.0),
            "processes" => of.processes.get(),
            "memory_mib" => of.memory_mib,
            "open_files" => of.open_files.get(),
            "file_mib" => of.file_mib,
            "tmp_mib" => of.tmp_mib.get(),
            "cache_mib" => of.cache_mib.get(),
            "home_mib" => of.home_mib.get(),
            "shm_mib" => of.shm_mib.get(),
            _ => return None,
        };
        Some(number.into())
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
            tmp_mib: const { count(4096) },
            cache_mib: const { count(8192) },
            home_mib: const { count(256) },
            shm_mib: const { count(256) },
        }
    }
}
