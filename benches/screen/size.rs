//! The program as a file.

use crate::figure::{Figure, megabytes};

pub fn measure() -> Vec<Figure> {
    let file = std::fs::metadata(crate::home::program()).expect("the program");
    let kib = file.len() / 1024;
    vec![Figure::held("the program, stripped", megabytes(kib), "at most 15 MB", kib <= 15 * 1024)]
}
