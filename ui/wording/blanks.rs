//! Shortens long runs of blanks in an approval request, which would push the rest off the screen.

/// The longest run of blanks that is shown unchanged.
const SHOWN: usize = 80;

/// Replaces each longer run of blanks by their number: `⟨3000 blanks⟩`.
pub fn counted(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(4096));
    let mut rest = text;
    while let Some(at) = rest.find(' ') {
        let (before, blanks) = rest.split_at(at);
        let count = blanks.bytes().take_while(|byte| *byte == b' ').count();
        out.push_str(before);
        match count > SHOWN {
            true => out.push_str(&format!("⟨{count} blanks⟩")),
            false => out.push_str(&blanks[..count]),
        }
        rest = &blanks[count..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_blanks_are_counted_and_a_few_are_shown() {
        let blanks = " ".repeat(3000);
        assert_eq!(counted(&format!("a{blanks};  b ")), "a⟨3000 blanks⟩;  b ");
        let few = " ".repeat(SHOWN);
        assert_eq!(counted(&few), few);
    }
}
