//! Whether the ground of the terminal is dark or light, as its reply says.

/// The ground of a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ground {
    /// Also that of a terminal that does not say.
    #[default]
    Dark,
    Light,
}

impl Ground {
    /// The request to say the colour of the ground (OSC 11).
    pub const QUERY: &str = "\x1b]11;?\x1b\\";

    /// The ground that a control string of the terminal names, without ESC ] and its end; `None` if it is no reply to
    /// [`Ground::QUERY`].
    pub fn of_reply(text: &[u8]) -> Option<Self> {
        let colour = std::str::from_utf8(text).ok()?.strip_prefix("11;")?;
        let (form, parts) = colour.split_once(':')?;
        let parts: Vec<f64> = parts.split('/').map(share).collect::<Option<_>>()?;
        // The last part of `rgba` is how opaque the window is.
        let (red, green, blue) = match (form, &parts[..]) {
            ("rgb", &[red, green, blue]) | ("rgba", &[red, green, blue, _]) => (red, green, blue),
            _ => return None,
        };
        let light = 0.299 * red + 0.587 * green + 0.114 * blue;
        Some(if light > 0.5 { Self::Light } else { Self::Dark })
    }
}

/// One to four hexadecimal digits as a share of the most that they can be.
fn share(digits: &str) -> Option<f64> {
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex || !(1..=4).contains(&digits.len()) {
        return None;
    }
    let value = u32::from_str_radix(digits, 16).ok()?;
    Some(f64::from(value) / f64::from((1u32 << (4 * digits.len())) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_says_whether_the_ground_is_light() {
        let of = |text: &str| Ground::of_reply(text.as_bytes());
        for dark in ["11;rgb:0000/2b2b/3636", "11;rgb:1e/1e/2e", "11;rgba:0000/0000/0000/ffff"] {
            assert_eq!(of(dark), Some(Ground::Dark), "{dark}");
        }
        for light in ["11;rgb:fdfd/f6f6/e3e3", "11;rgb:f/f/f", "11;rgba:ffff/ffff/ffff/0000"] {
            assert_eq!(of(light), Some(Ground::Light), "{light}");
        }
        for other in [
            "11;?",
            "10;rgb:ffff/ffff/ffff",
            "11;rgb:ffff/ffff",
            "11;rgb:ffff/ffff/ffff/ffff",
            "11;rgb:+fff/ffff/ffff",
            "11;rgb:fffff/0/0",
            "11;rgb://",
            "11;cmyk:0/0/0/0",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(Ground::of_reply(b"11;rgb:\xff/0/0"), None);
    }
}
