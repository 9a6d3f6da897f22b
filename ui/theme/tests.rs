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
    let text = "[palette]\nmine = \"#010203\"\n\n[roles]\nyou = { fg = \"mine\", bold = true }\n\
                nonsense = \"red\"\nok = { fg = \"greenish\" }\nwarn = { fog = \"red\" }\n";
    std::fs::write(&path, text).expect("written");
    let (theme, diagnostics) = Theme::load_for("night", Some(dir.path()), Depth::True);
    let (built_in, _) = Theme::load_for("night", None, Depth::True);
    assert_eq!(theme.you.fg, Some(Color::Rgb(1, 2, 3)));
    assert_eq!((theme.ok, theme.warn, theme.dim), (built_in.ok, built_in.warn, built_in.dim));
    let file = path.display();
    assert_eq!(diagnostics.len(), 3);
    assert!(
        diagnostics.iter().any(|c| c.starts_with(&format!("{file}:6:1: no role named nonsense")))
    );
    assert!(
        diagnostics.iter().any(|c| c.starts_with(&format!("{file}:7:6: greenish is no colour")))
    );
    assert!(diagnostics.iter().any(|c| c.starts_with(&format!("{file}:8:8: unknown field `fog`"))));
}

#[test]
fn a_file_that_is_no_toml_leaves_the_built_in_theme() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(dir.path().join("night.toml"), "[roles]\nyou = = 3\n").expect("written");
    let (theme, diagnostics) = Theme::load_for("night", Some(dir.path()), Depth::True);
    assert_eq!(theme, Theme::load_for("night", None, Depth::True).0);
    assert!(diagnostics[0].contains("night.toml:2:7: "), "{diagnostics:?}");
}

#[test]
fn a_theme_of_the_users_own_is_listed_and_an_unknown_one_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(dir.path().join("sea.toml"), "[roles]\nyou = \"blue\"\n").expect("written");
    assert_eq!(Theme::names(Some(dir.path())), ["night", "day", "mono", "sea"]);
    let (theme, diagnostics) = Theme::load_for("sea", Some(dir.path()), Depth::True);
    assert_eq!(
        (theme.name.as_str(), theme.you.fg, diagnostics.len()),
        ("sea", Some(Color::Blue), 0)
    );
    let (theme, diagnostics) = Theme::load_for("lake", Some(dir.path()), Depth::True);
    assert_eq!(theme.name, "night");
    assert_eq!(diagnostics, ["no theme named lake; there are night, day, mono, sea"]);
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
