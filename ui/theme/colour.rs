//! Colours of theme files, reduced to those that the terminal can show.

use ratatui::style::Color;

/// How many colours the terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// None are wanted.
    Mono,
    /// The 16 named ones.
    Ansi,
    /// The palette of 256.
    Palette,
    /// 24 bits each.
    True,
}

impl Depth {
    /// Reads `NO_COLOR`, `COLORTERM`, `TERM` and the variables of multiplexers through `env`.
    pub fn detect(env: impl Fn(&str) -> Option<String>) -> Self {
        if why_mono(&env).is_some() {
            return Self::Mono;
        }
        let of = |key: &str| env(key).unwrap_or_default();
        let term = of("TERM");
        // GNU screen reads a colour of 24 bits as several attributes.
        let in_screen = !of("STY").is_empty() && of("TMUX").is_empty();
        let inherited = matches!(of("COLORTERM").as_str(), "truecolor" | "24bit");
        if inherited && !in_screen || term.ends_with("-direct") {
            return Self::True;
        }
        if term.contains("256color") { Self::Palette } else { Self::Ansi }
    }
}

/// Why a terminal with this environment gets no colours, if it gets none.
pub fn why_mono(env: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    let of = |key: &str| env(key).unwrap_or_default();
    if !of("NO_COLOR").is_empty() {
        return Some("NO_COLOR is set; start yoi without it");
    }
    (of("TERM") == "dumb").then_some("TERM is `dumb`; start yoi with the type of your terminal")
}

/// The levels of one channel in the 6x6x6 cube of the 256 colours.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];
/// The 16 named colours as most terminals show them.
const NAMED: [(Color, (u8, u8, u8)); 16] = [
    (Color::Black, (0, 0, 0)),
    (Color::Red, (205, 49, 49)),
    (Color::Green, (13, 188, 121)),
    (Color::Yellow, (229, 229, 16)),
    (Color::Blue, (36, 114, 200)),
    (Color::Magenta, (188, 63, 188)),
    (Color::Cyan, (17, 168, 205)),
    (Color::Gray, (204, 204, 204)),
    (Color::DarkGray, (102, 102, 102)),
    (Color::LightRed, (241, 76, 76)),
    (Color::LightGreen, (35, 209, 139)),
    (Color::LightYellow, (245, 245, 67)),
    (Color::LightBlue, (59, 142, 234)),
    (Color::LightMagenta, (214, 112, 214)),
    (Color::LightCyan, (41, 184, 219)),
    (Color::White, (255, 255, 255)),
];

/// The nearest colour that a terminal of this depth can show; `None` where no colour is wanted.
pub fn fit(colour: Color, depth: Depth) -> Option<Color> {
    match (depth, colour) {
        (Depth::Mono, _) => None,
        (Depth::Palette, Color::Rgb(r, g, b)) => Some(Color::Indexed(indexed(r, g, b))),
        (Depth::Ansi, Color::Rgb(r, g, b)) => Some(named((r, g, b))),
        (Depth::Ansi, Color::Indexed(index)) => Some(named(rgb_of(index))),
        (Depth::Ansi | Depth::Palette | Depth::True, other) => Some(other),
    }
}

fn indexed(r: u8, g: u8, b: u8) -> u8 {
    let level = |c: u8| {
        let near = |i: &usize| CUBE[*i].abs_diff(c);
        (0..CUBE.len()).min_by_key(near).unwrap_or(0)
    };
    let (x, y, z) = (level(r), level(g), level(b));
    let cube = (CUBE[x], CUBE[y], CUBE[z]);
    let mean = (u32::from(r) + u32::from(g) + u32::from(b)) / 3;
    let step = (mean.saturating_sub(3) / 10).min(23);
    let grey = u8::try_from(8 + step * 10).unwrap_or(238);
    if distance((grey, grey, grey), (r, g, b)) < distance(cube, (r, g, b)) {
        return u8::try_from(232 + step).unwrap_or(255);
    }
    u8::try_from(16 + 36 * x + 6 * y + z).unwrap_or(15)
}

fn rgb_of(index: u8) -> (u8, u8, u8) {
    match index {
        0..=15 => NAMED[usize::from(index)].1,
        16..=231 => {
            let n = usize::from(index) - 16;
            (CUBE[n / 36], CUBE[n / 6 % 6], CUBE[n % 6])
        }
        232.. => {
            let grey = 8 + (index - 232) * 10;
            (grey, grey, grey)
        }
    }
}

fn named(rgb: (u8, u8, u8)) -> Color {
    let near = NAMED.iter().min_by_key(|(_, known)| distance(*known, rgb));
    near.map_or(Color::Reset, |(colour, _)| *colour)
}

/// The squared distance of two colours, with the channels weighted for the human eye.
fn distance(a: (u8, u8, u8), b: (u8, u8, u8)) -> u32 {
    let square = |x: u8, y: u8| u32::from(x.abs_diff(y)).pow(2);
    2 * square(a.0, b.0) + 4 * square(a.1, b.1) + 3 * square(a.2, b.2)
}
