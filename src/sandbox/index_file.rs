//! Parses an index of git as strictly as git writes it. git's own reader is more lenient in places: a file that it would
//! read otherwise counts as unreadable here, so that no entry is hidden from the check.

/// The largest index that is read as a whole, in bytes: one of about two million files.
pub const LIMIT: u64 = 256 * 1024 * 1024;
/// Bytes of an id: SHA-1 or SHA-256.
pub const IDS: [usize; 2] = [20, 32];
/// The fields of an entry before the id of its content; the mode is the seventh of them.
const FIELDS: usize = 40;
const MODE: usize = 24;
/// The bits of an entry's flags: its path's length, and whether more flags follow.
const LENGTH: u16 = 0xfff;
const EXTENDED: u16 = 0x4000;
/// The signature of an extension and its length.
const HEADER: usize = 8;
/// Extensions: the base of a split index, the blocks that threads read, and where the entries end.
const LINK: &[u8] = b"link";
const BLOCKS: &[u8] = b"IEOT";
const END: &[u8] = b"EOIE";
/// An offset of a number in git's encoding does not need more bits.
const MOST_REMOVED: usize = 1 << 32;

/// An entry of an index. The path of an entry that replaces one of the base of a split index is empty.
pub struct Entry<'a> {
    pub path: &'a [u8],
    pub mode: u32,
    /// The id of its content.
    pub id: &'a [u8],
}

/// Calls `on_entry` for each entry in the bytes of an index whose ids have this length, and returns the id of its base
/// if it is a split one; `None` if git writes no such index.
pub fn parse(
    bytes: &[u8],
    id: usize,
    mut on_entry: impl FnMut(Entry<'_>),
) -> Option<Option<Vec<u8>>> {
    let mut rest = bytes.strip_prefix(b"DIRC")?;
    let (version, count) = (number(&mut rest)?, number(&mut rest)?);
    if !(2..=4).contains(&version) {
        return None;
    }
    // Where the entries begin, if git can read them without the previous one.
    let (mut path, mut begins) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let begin = rest;
        let fields = rest.split_off(..FIELDS + id)?;
        let flags = u16::from_be_bytes(*rest.split_off(..2)?.first_chunk()?);
        if flags & EXTENDED != 0 {
            rest.split_off(..2)?;
        }
        // Since version 4 a path begins with the number of bytes to remove from the end of the previous path.
        let kept = if version < 4 { 0 } else { path.len().checked_sub(removed(&mut rest)?)? };
        path.truncate(kept);
        let end = rest.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(rest.split_off(..end)?);
        if usize::from(flags & LENGTH) != path.len().min(usize::from(LENGTH)) {
            return None;
        }
        let long = begin.len() - rest.len();
        // A zero ends the path; earlier versions fill entries with zeros to a multiple of eight bytes.
        rest.split_off(..if version < 4 { 8 - long % 8 } else { 1 })?;
        begins.push((kept == 0).then_some(bytes.len() - begin.len()));
        let mode = u32::from_be_bytes(*fields.get(MODE..)?.first_chunk()?);
        on_entry(Entry { path: &path, mode, id: fields.get(FIELDS..)? });
    }
    base(bytes, rest, id, &begins)
}

/// Reads the extensions: the id of the base. Those that tell git where the entries are must not differ from the entries
/// that were read.
fn base(
    bytes: &[u8],
    mut rest: &[u8],
    id: usize,
    begins: &[Option<usize>],
) -> Option<Option<Vec<u8>>> {
    let end = bytes.len() - rest.len();
    // git looks for this extension at a fixed place, before it reads the others.
    let last = bytes
        .len()
        .checked_sub(id + HEADER + 4 + id)
        .and_then(|at| bytes.get(at..)?.strip_prefix(END));
    if last.is_some_and(|last| {
        last.get(4..).is_none_or(|mut at| number(&mut at) != u32::try_from(end).ok())
    }) {
        return None;
    }
    let mut base = None;
    while rest.len() > id {
        let signature = rest.split_off(..4)?;
        let length = usize::try_from(number(&mut rest)?).ok()?;
        let data = rest.split_off(..length)?;
        match signature {
            LINK => base = Some(data.get(..id)?.to_vec()),
            BLOCKS if !are_blocks(data, begins)? => return None,
            _ => {}
        }
    }
    (rest.len() == id).then_some(base)
}

/// Whether the blocks that threads read are the entries in their order; `None` if they cannot be read.
fn are_blocks(mut data: &[u8], begins: &[Option<usize>]) -> Option<bool> {
    let (version, mut next) = (number(&mut data)?, 0_usize);
    while !data.is_empty() {
        let (begin, count) = (number(&mut data)?, number(&mut data)?);
        let known = begins.get(next).copied().flatten();
        if known != usize::try_from(begin).ok() {
            return Some(false);
        }
        next = next.checked_add(usize::try_from(count).ok()?)?;
    }
    Some(version == 1 && next == begins.len())
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    rest.split_off(..4)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Parses a number of variable length in git's encoding of offsets: seven bits in each byte.
fn removed(rest: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let byte = *rest.split_off_first()?;
        value = (value << 7) + usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value += 1;
        // git reads a number that is too large as zero.
        if value > MOST_REMOVED {
            return None;
        }
    }
}
