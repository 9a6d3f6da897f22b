use super::*;
use ratatui::style::{Color, Modifier};

fn styles(theme: &Theme) -> Vec<Style> {
    let mut copy = theme.clone();
    Role::NAMES.iter().filter_map(|name| copy.role_mut(name).copied()).collect()
}

#[test]
fn every_built_in_theme_styles_every_role_without_diagnostics() {
    for (name, text) in BUILT_IN {
        for depth in [Depth::Ansi, Depth::Palette, Depth::True] {
            let (theme, diagnostics) = Theme::load_for(name, None, depth);
            assert_eq!(diagnostics, Vec::<String>::new());
            assert_eq!(theme.name, name);
        }
        for role in Role::NAMES {
            let said = text.lines().any(|line| line.starts_with(&format!("{role} =")));
            assert!(said, "{name} says nothing of {role}");
        }
    }
}

#[test]
fn no_color_means_no_colour_at_all() {
    let (theme, _) = Theme::load_for("day", None, Depth::Mono);
    assert_eq!(theme.name, "mono");
    for style in styles(&theme) {
        assert_eq!((style.fg, style.bg, style.underline_color), (None, None, None));
    }
    assert!(theme.selection.add_modifier.contains(Modifier::REVERSED));
}

#[test]
fn the_terminal_says_how_many_colours_it_has() {
    let depth = |vars: &[(&str, &str)]| {
        let vars: Vec<(String, String)> =
            vars.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        Depth::detect(|key| vars.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone()))
    };
    assert_eq!(depth(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]), Depth::True);
    assert_eq!(depth(&[("TERM", "tmux-256color")]), Depth::Palette);
    let in_screen = [("STY", "1.pts"), ("TERM", "screen-256color"), ("COLORTERM", "truecolor")];
    assert_eq!(depth(&in_screen), Depth::Palette);
    let tmux_in_screen = [in_screen[0], ("TMUX", "/tmp/tmux,1,0"), in_screen[1], in_screen[2]];
    assert_eq!(depth(&tmux_in_screen), Depth::True);
    assert_eq!(depth(&[("TERM", "linux")]), Depth::Ansi);
    assert_eq!(depth(&[("TERM", "xterm-256color"), ("NO_COLOR", "1")]), Depth::Mono);
    assert_eq!(depth(&[("TERM", "xterm-256color"), ("NO_COLOR", "")]), Depth::Palette);
}

#[test]
fn colours_are_brought_down_to_the_nearest_one() {
    assert_eq!(colour::fit(Color::Rgb(255, 0, 0), Depth::Palette), Some(Color::Indexed(196)));
    assert_eq!(colour::fit(Color::Rgb(128, 128, 128), Depth::Palette), Some(Color::Indexed(244)));
    assert_eq!(colour::fit(Color::Rgb(250, 80, 70), Depth::Ansi), Some(Color::LightRed));
    assert_eq!(colour::fit(Color::Rgb(1, 2, 3), Depth::True), Some(Color::Rgb(1, 2, 3)));
    for depth in [Depth::Ansi, Depth::Palette] {
        for (name, _) in BUILT_IN {
            for style in styles(&Theme::load_for(name, None, depth).0) {
                for shown in [style.fg, style.bg].into_iter().flatten() {
                    assert!(!matches!(shown, Color::Rgb(..)), "{name} at {depth:?}");
                    let ansi = depth == Depth::Ansi;
                    assert!(!(ansi && matches!(shown, Color::Indexed(_))), "{name} at 16");
                }
            }
        }
    }
}

#[test]
fn a_file_of_the_user_replaces_roles_and_its_errors_name_file_line_and_column() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("night.toml");
    let text = "[palette]\nmine = \"#010203\"\n\n[roles]\naccent = { fg = \"mine\", bold = true }\n\
                nonsense = \"red\"\nneeds = { fg = \"greenish\" }\nwarn = { fog = \"red\" }\n";
    std::fs::write(&path, text).expect("written");
    let (theme, diagnostics) = Theme::load_for("night", Some(dir.path()), Depth::True);
    let (built_in, _) = Theme::load_for("night", None, Depth::True);
    assert_eq!(theme, built_in, "a file with a mistake changes nothing");
    let file = path.display();
    assert_eq!(diagnostics.len(), 3);
    assert!(
        diagnostics.iter().any(|c| c.starts_with(&format!("{file}:6:1: no role named nonsense")))
    );
    assert!(
        diagnostics.iter().any(|c| c.starts_with(&format!("{file}:7:9: greenish is no colour")))
    );
    assert!(diagnostics.iter().any(|c| c.starts_with(&format!("{file}:8:8: unknown field `fog`"))));
    let mended: Vec<&str> = text.lines().take(5).collect();
    std::fs::write(&path, mended.join("\n")).expect("written");
    let (theme, diagnostics) = Theme::load_for("night", Some(dir.path()), Depth::True);
    assert_eq!(diagnostics, Vec::<String>::new());
    assert_eq!(theme.accent.fg, Some(Color::Rgb(1, 2, 3)));
    assert_eq!((theme.needs, theme.warn, theme.dim), (built_in.needs, built_in.warn, built_in.dim));
}

#[test]
fn a_file_that_is_no_toml_leaves_the_built_in_theme() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(dir.path().join("night.toml"), "[roles]\naccent = = 3\n").expect("written");
    let (theme, diagnostics) = Theme::load_for("night", Some(dir.path()), Depth::True);
    assert_eq!(theme, Theme::load_for("night", None, Depth::True).0);
    assert!(diagnostics[0].contains("night.toml:2:10: "), "{diagnostics:?}");
}

#[test]
fn a_theme_of_the_users_own_is_listed_and_an_unknown_one_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(dir.path().join("sea.toml"), "[roles]\naccent = \"blue\"\n").expect("written");
    assert_eq!(Theme::names(Some(dir.path())), ALL);
    let (theme, diagnostics) = Theme::load_for("sea", Some(dir.path()), Depth::True);
    assert_eq!(
        (theme.name.as_str(), theme.accent.fg, diagnostics.len()),
        ("sea", Some(Color::Blue), 0)
    );
    let (theme, diagnostics) = Theme::load_for("lake", Some(dir.path()), Depth::True);
    assert_eq!(theme.name, "night");
    assert_eq!(diagnostics, [format!("no theme named lake; there are {}", ALL.join(", "))]);
}

const ALL: [&str; 7] = ["auto", "night", "day", "high-contrast", "terminal", "mono", "sea"];

#[test]
fn the_ground_of_the_terminal_chooses_where_no_theme_is_named() {
    assert_eq!((over(AUTO, Ground::Dark), over(AUTO, Ground::Light)), ("night", "day"));
    assert_eq!(over("mono", Ground::Light), "mono");
    assert!(must_exist(AUTO, None).is_ok() && must_exist("lake", None).is_err());
}

#[test]
fn the_theme_of_the_terminal_has_no_colour_of_its_own_at_any_depth() {
    for depth in [Depth::Ansi, Depth::Palette, Depth::True] {
        let (theme, _) = Theme::load_for("terminal", None, depth);
        assert_eq!((theme.text, theme.raised, theme.has_grounds()), Default::default());
        for shown in styles(&theme).into_iter().flat_map(|style| [style.fg, style.bg]).flatten() {
            assert!(!matches!(shown, Color::Rgb(..) | Color::Indexed(_)), "{shown:?}");
        }
    }
}

#[test]
fn a_terminal_without_colours_says_why() {
    let why = |name: &'static str, value: &'static str| {
        colour::why_mono(|key| (key == name).then(|| value.to_owned()))
    };
    assert_eq!(why("NO_COLOR", "1"), Some("NO_COLOR is set; start yoi without it"));
    assert!(why("TERM", "dumb").is_some_and(|why| why.starts_with("TERM is `dumb`")));
    assert_eq!(why("TERM", "xterm-256color"), None);
    assert_eq!(why("NO_COLOR", ""), None);
}

/// A colour as it is shown: one of 16 as xterm shows it.
fn shown(colour: Color) -> (u8, u8, u8) {
    match colour {
        Color::Rgb(r, g, b) => (r, g, b),
        Color::Black => (0, 0, 0),
        Color::White => (255, 255, 255),
        Color::Red => (205, 0, 0),
        Color::Green => (0, 130, 0),
        Color::Yellow => (205, 205, 0),
        Color::Blue => (0, 0, 238),
        Color::Magenta => (205, 0, 205),
        Color::Cyan => (0, 205, 205),
        Color::DarkGray => (127, 127, 127),
        Color::Gray => (229, 229, 229),
        Color::LightRed => (255, 0, 0),
        Color::LightGreen => (0, 255, 0),
        Color::LightYellow => (255, 255, 0),
        Color::LightCyan => (0, 255, 255),
        other => panic!("{other:?} is in no theme"),
    }
}

/// The contrast of two colours by WCAG 2.2, from 1 to 21.
fn contrast(one: Color, other: Color) -> f64 {
    let part = |value: u8| {
        let share = f64::from(value) / 255.0;
        if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    let light = |(r, g, b)| 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    let (one, other) = (light(shown(one)), light(shown(other)));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn words_can_be_read_on_every_ground_of_a_theme() {
    for (name, least) in [("night", 4.5), ("day", 4.5), ("high-contrast", 7.0)] {
        let (theme, _) = Theme::load_for(name, None, Depth::True);
        let grounds =
            [theme.text.bg, theme.raised.bg, theme.selection.bg].map(|bg| bg.expect("a ground"));
        let [text, dim, accent] = [theme.text, theme.dim, theme.accent].map(|style| style.fg);
        let marks =
            [theme.needs, theme.warn, theme.error, theme.added, theme.link].map(|style| style.fg);
        for ground in grounds {
            for word in [text, accent].into_iter().flatten() {
                assert!(contrast(word, ground) >= least, "{name}: {word:?} on {ground:?}");
            }
            for mark in marks.into_iter().chain([dim]).flatten() {
                let found = contrast(mark, ground);
                assert!(found >= 3.0, "{name}: {mark:?} on {ground:?} {found:.2}");
            }
        }
        for word in marks.into_iter().chain([dim]).flatten() {
            let found = contrast(word, grounds[0]);
            assert!(found >= least, "{name}: {word:?} on its ground {found:.2}");
        }
    }
}

#[test]
fn no_other_role_has_the_look_of_what_waits_for_a_person() {
    for (name, _) in BUILT_IN {
        for depth in [Depth::Ansi, Depth::Palette, Depth::True] {
            let (theme, _) = Theme::load_for(name, None, depth);
            let mut others = theme.clone();
            others.needs = Style::new();
            // Where it has a ground of its own, that is what stands out.
            let taken =
                styles(&others).into_iter().any(|style| match theme.needs.bg.or(theme.needs.fg) {
                    Some(orange) => style.fg == Some(orange) || style.bg == Some(orange),
                    None => style == theme.needs,
                });
            assert!(!taken, "{name} at {depth:?}");
        }
    }
}

#[test]
fn looks_for_16_colours_can_be_read_on_black_and_on_white() {
    let over_both = [("night", Depth::Ansi), ("terminal", Depth::Ansi), ("terminal", Depth::True)];
    for (name, depth) in over_both {
        let (theme, _) = Theme::load_for(name, None, depth);
        for style in styles(&theme) {
            let Some(colour) = style.fg else { continue };
            let grounds = style.bg.map_or(vec![Color::Black, Color::White], |ground| vec![ground]);
            for ground in grounds {
                let found = contrast(colour, ground);
                assert!(found >= 3.0, "{name}: {colour:?} on {ground:?}: {found:.2}");
            }
        }
    }
}

#[test]
fn looks_for_16_colours_over_a_ground_of_their_own_can_be_read() {
    for name in ["day", "high-contrast"] {
        let (theme, _) = Theme::load_for(name, None, Depth::Ansi);
        for style in styles(&theme) {
            let (Some(colour), Some(ground)) = (style.fg, style.bg.or(theme.text.bg)) else {
                continue;
            };
            let found = contrast(colour, ground);
            assert!(found >= 3.0, "{name}: {colour:?} on {ground:?}: {found:.2}");
        }
    }
}
