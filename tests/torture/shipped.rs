//! The program that is shipped has no crash points.

#[test]
fn a_program_built_without_the_feature_has_no_crash_points() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_yoi")).expect("the program");
    for name in [&b"YOI_CRASH_AT"[..], b"YOI_CRASH_TRACE"] {
        let there = program.windows(name.len()).any(|piece| piece == name);
        assert!(!there, "{} is in the program", String::from_utf8_lossy(name));
    }
}
