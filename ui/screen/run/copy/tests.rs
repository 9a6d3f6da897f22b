use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// What becomes of these pieces where 10 bytes fit the clipboard.
fn written(directory: &Path, pieces: Vec<Piece>) -> Result<Copied, String> {
    let (sender, receiver) = mpsc::channel(pieces.len().max(1));
    for piece in pieces {
        sender.try_send(piece).unwrap_or_else(|_| panic!("room for every piece"));
    }
    drop(sender);
    write_copy(receiver, directory, "alice-1", 10)
}

fn text(text: &str) -> Piece {
    Piece::Text(text.into())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn a_short_copy_makes_no_file_and_a_long_one_a_new_private_file() {
    let top = tempfile::tempdir().expect("a directory");
    let copies = top.path().join("state/copies");
    let short = written(&copies, vec![text("12345"), text("67890"), Piece::End]);
    assert!(matches!(short, Ok(Copied::Text(text)) if text == "1234567890"));
    assert!(!copies.exists());
    for name in ["alice-1.txt", "alice-1-2.txt"] {
        let long = written(&copies, vec![text("12345"), text("678901"), text("日本"), Piece::End]);
        let Ok(Copied::File(path, size)) = long else { panic!("{long:?}") };
        assert_eq!((path.as_path(), size), (copies.join(name).as_path(), 17));
        assert_eq!(fs::read_to_string(&path).expect("text"), "12345678901日本");
        assert_eq!((mode(&copies), mode(&path)), (0o700, 0o600));
    }
}

#[test]
fn a_copy_that_is_not_read_to_its_end_leaves_no_file() {
    let top = tempfile::tempdir().expect("a directory");
    for pieces in [vec![text("12345")], vec![text("12345678901"), text("and more")]] {
        let why = written(top.path(), pieces).expect_err("it was given up");
        assert!(why.contains(GIVEN_UP), "{why}");
    }
    assert_eq!(fs::read_dir(top.path()).expect("a directory").count(), 0);
}

#[test]
fn a_copy_that_cannot_be_written_says_where() {
    let top = tempfile::tempdir().expect("a directory");
    let file = top.path().join("file");
    fs::write(&file, "").expect("written");
    let why = written(&file.join("copies"), vec![text("12345678901"), Piece::End]);
    let why = why.expect_err("a file is in the way");
    assert!(why.contains("file/copies") || why.contains("/file"), "{why}");
}
