//! Kinds of files that are no text, by their first bytes or their name, and a command that reads each.

use crate::tools::text_limit;
use std::path::Path;

/// Bytes in which a NUL makes a file binary, as for git.
const LOOKED_AT: usize = 8000;

/// Kinds by their first bytes, with a command in which `{}` stands for the path.
const BY_BYTES: &[(&[u8], &str, &str)] = &[
    (b"%PDF-", "a PDF document", "pdftotext -layout {} - | head -n 300"),
    (b"PK\x03\x04", "a zip archive, as office documents and jar files are", "unzip -l {}"),
    (b"PK\x05\x06", "an empty zip archive", "unzip -l {}"),
    (b"\x1f\x8b", "compressed by gzip", "zcat {} | head -c 10000, or for an archive tar -tzf {}"),
    (b"BZh", "compressed by bzip2", "bzcat {} | head -c 10000, or for an archive tar -tjf {}"),
    (b"\xfd7zXZ\0", "compressed by xz", "xzcat {} | head -c 10000, or for an archive tar -tJf {}"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "zstdcat {} | head -c 10000"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "7z l {}"),
    (b"\x7fELF", "a program or library (ELF)", "readelf -h {}"),
    (b"SQLite format 3\0", "a SQLite database", "sqlite3 {} .schema"),
    (b"\xff\xfe\0\0", "text in UTF-32", "iconv -f UTF-32 -t UTF-8 {}"),
    (b"\0\0\xfe\xff", "text in UTF-32", "iconv -f UTF-32 -t UTF-8 {}"),
];
const HEX: &str = "od -A x -t x1z {} | head -n 40";
const CELLS: &str = "jq -r '.cells[] | \"# \" + .cell_type, (.source | if type == \"array\" then join(\"\") else . end)' {}";

/// Why a file is not shown as text: its kind, its size, and a command that reads it. `None` for text
/// in UTF-8 or in a similar encoding.
pub fn not_text(path: &Path, bytes: &[u8], size: u64) -> Option<String> {
    let head = &bytes[..bytes.len().min(LOOKED_AT)];
    // A text can begin with a printable word.
    let certain = |magic: &[u8]| magic != b"BZh" || head.contains(&0);
    let known = BY_BYTES.iter().find(|(magic, ..)| head.starts_with(magic) && certain(magic));
    match known {
        Some((_, what, command)) => Some(refusal(path, size, what, command)),
        None if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") => None,
        None if head.contains(&0) => Some(refusal(path, size, "binary", HEX)),
        None => None,
    }
}

/// Why Write and Edit do not change a text in this encoding.
pub fn not_written(path: &Path, encoding: &str) -> String {
    let from = match encoding.split_once(' ') {
        Some(("UTF-16", _)) => "UTF-16",
        Some(("UTF-8", _)) => "UTF-8 -c",
        // Which 8-bit encoding it is cannot be seen.
        _ => "ENCODING",
    };
    let named = if from == "ENCODING" { " (name its encoding for ENCODING)" } else { "" };
    let mut beside = path.as_os_str().to_owned();
    beside.push(".utf8");
    let (shown, beside, path) = (path.display(), quoted(Path::new(&beside)), quoted(path));
    format!(
        "{shown} is in {encoding}: Write and Edit change text in UTF-8 only; change it with a command that keeps its \
         encoding, or, if it may be UTF-8 from now on, convert it with Bash{named}: \
         iconv -f {from} -t UTF-8 {path} > {beside} && cat {beside} > {path} && rm {beside}"
    )
}

/// Why a notebook is not shown whole: most of its JSON is not its text. `None` for every other file.
pub fn notebook(path: &Path, size: u64) -> Option<String> {
    path.extension().filter(|end| *end == "ipynb")?;
    let text = refusal(path, size, "a Jupyter notebook", CELLS);
    Some(format!("{text}; to edit its JSON, use Read with a limit"))
}

fn refusal(path: &Path, size: u64, what: &str, command: &str) -> String {
    let (size, command) = (text_limit::size(size), command.replace("{}", &quoted(path)));
    format!(
        "{} is {what}, {size}, and not shown as text; read it with Bash: {command}",
        path.display()
    )
}

/// The path as one word of a command line.
fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    match path.chars().all(plain) {
        true => path.into_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_text_are_named_with_a_command_that_reads_them() {
        let of = |name: &str, bytes: &[u8]| {
            let path = Path::new(name);
            not_text(path, bytes, 2048).or_else(|| notebook(path, 2048))
        };
        for (name, bytes, what, command) in [
            (
                "/w/a b.pdf",
                b"%PDF-1.7".as_slice(),
                "a PDF document",
                "pdftotext -layout '/w/a b.pdf' -",
            ),
            ("/w/a.docx", b"PK\x03\x04\x14\0", "a zip archive, as ", "unzip -l /w/a.docx"),
            ("/w/a", b"\x7fELF\x02\x01", "a program or library", "readelf -h /w/a"),
            ("/w/a", b"a\0b", "binary", "od -A x -t x1z /w/a"),
            (
                "/w/it's",
                b"\xff\xfe\0\0a",
                "text in UTF-32",
                r"iconv -f UTF-32 -t UTF-8 '/w/it'\''s'",
            ),
            ("/w/a.ipynb", b"{\"cells\": []}", "a Jupyter notebook", "jq -r '.cells[]"),
        ] {
            let text = of(name, bytes).unwrap();
            assert!(text.contains(&format!(" is {what}")) && text.contains("2.0 KiB"), "{text}");
            assert!(text.contains(&format!("read it with Bash: {command}")), "{text}");
        }
        for text in
            [b"".as_slice(), b"plain", b"BZhang wrote this", b"a\xff b", b"%PD", b"\xff\xfea\0"]
        {
            assert_eq!(of("/w/a.txt", text), None, "{text:?}");
        }
    }
}
