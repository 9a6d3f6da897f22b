//! Names of members. The wire knows no refusal: a name that cannot be taken becomes another one.

/// The name under which the leader itself speaks.
pub const BROKER: &str = "broker";
/// The address that stands for every member except the sender.
pub const BROADCAST: &str = "broadcast";
/// The name of the gateway to other machines. It looks like that of a leader, so no member gets it.
pub const GATEWAY: &str = "gateway:broker";
/// The longest name, in bytes.
pub const MAX_NAME: usize = 256;
/// The name in place of one that is reserved or empty.
const USUAL: &str = "agent";
/// The highest number that makes a name unique.
const HIGHEST: u32 = 999;

/// Whether a leader speaks under this name: ours, or one of another machine.
pub fn is_broker(name: &str) -> bool {
    name == BROKER || name.ends_with(":broker")
}

/// Whether a text can be the name of an agent, of this machine or of another one.
pub(crate) fn is_agent_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && !name.chars().any(char::is_control)
}

/// The name that a member gets which asks for `wanted`; `None`: every form of it is taken.
pub fn assigned(wanted: &str, is_taken: impl Fn(&str) -> bool) -> Option<String> {
    let name = usable(wanted);
    if !is_taken(&name) {
        return Some(name);
    }
    (2..=HIGHEST).map(|number| numbered(&name, number)).find(|name| !is_taken(name))
}

/// The name with control characters replaced, cut to its limit, and another one for a reserved name.
fn usable(wanted: &str) -> String {
    let plain: String = wanted.chars().map(|c| if c.is_control() { '-' } else { c }).collect();
    let name = cut(&plain, MAX_NAME);
    if name.is_empty() || name == BROADCAST || is_broker(name) {
        USUAL.to_owned()
    } else {
        name.to_owned()
    }
}

fn numbered(name: &str, number: u32) -> String {
    let end = format!("#{number}");
    format!("{}{end}", cut(name, MAX_NAME - end.len()))
}

fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(wanted: &str) -> String {
        assigned(wanted, |_| false).expect("no name is taken")
    }

    #[test]
    fn a_reserved_or_empty_name_becomes_agent() {
        for reserved in ["", "broker", "broadcast", "casa:broker", ":broker"] {
            assert_eq!(first(reserved), "agent", "{reserved}");
        }
        for free in ["Broker", "broker2", "casa:x", "proj/a", "a b", "\u{e9}"] {
            assert_eq!(first(free), free);
        }
    }

    #[test]
    fn a_name_is_cut_to_256_bytes_with_its_number() {
        let long = "\u{e9}".repeat(200);
        let name = first(&long);
        assert_eq!(name.len(), MAX_NAME);
        let second = assigned(&long, |taken| taken == name).expect("a second name");
        assert!(second.len() <= MAX_NAME && second.ends_with("\u{e9}#2"), "{second}");
    }

    #[test]
    fn the_first_free_number_is_taken_and_numbers_end_at_999() {
        let taken = |name: &str| matches!(name, "bob" | "bob#2" | "bob#4");
        assert_eq!(assigned("bob", taken).as_deref(), Some("bob#3"));
        assert_eq!(assigned("bob", |_| true), None);
    }

    #[test]
    fn control_characters_of_a_name_are_replaced() {
        assert_eq!(first("a\u{1b}[2Jb\nc\u{9b}"), "a-[2Jb-c-");
    }
}
