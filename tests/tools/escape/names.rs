//! File names that are not UTF-8: commands start in such directories, and guarded paths in them
//! stay guarded.

use crate::escape::cell::Cell;
use crate::escape::git::git;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

#[tokio::test]
async fn a_repository_below_a_name_in_another_encoding_is_guarded_and_stops_no_command() {
    let cell = Cell::new();
    let other = cell.path("ws").join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q"]);
    let config = fs::read(other.join(".git/config")).unwrap();
    cell.run("cd caf*; cat .git/HEAD").await.well();
    cell.run("cd caf*; echo '[core] pager = x' >> .git/config").await.refused();
    assert_eq!(fs::read(other.join(".git/config")).unwrap(), config);
}
