//! The program as a file.

use crate::figure::Figure;

/// In bytes.
const LIMIT: u64 = 26_000_000;

pub fn measure() -> Vec<Figure> {
    let file = std::fs::metadata(crate::home::program()).expect("the program");
    let bytes = file.len();
    let size = format!("{bytes} bytes");
    vec![Figure::held("the program, stripped", size, "at most 26,000,000 bytes", bytes <= LIMIT)]
}
