//! What puts a copy into the clipboard of the person.

/// How a copy reaches the clipboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clipboard {
    /// The terminal, by the sequence OSC 52.
    #[default]
    Terminal,
    /// The same through GNU screen, which takes it in pieces.
    GnuScreen,
    /// A program with its arguments; it reads the copy from its standard input.
    Program(&'static [&'static str]),
}

/// The programs: the variable that says that they are of use, and their words.
const PROGRAMS: [(&str, Clipboard); 3] = [
    ("WAYLAND_DISPLAY", Clipboard::Program(&["wl-copy"])),
    ("DISPLAY", Clipboard::Program(&["xclip", "-selection", "clipboard"])),
    // tmux lets no sequence of a program inside it reach the clipboard, unless it is told to.
    ("TMUX", Clipboard::Program(&["tmux", "load-buffer", "-w", "-"])),
];

impl Clipboard {
    /// The way for a screen with these variables. A display that is reached over SSH is not the one of the person.
    pub fn of_screen(env: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
        let path = env("PATH").unwrap_or_default();
        let is_there =
            |program: &str| std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
        let of_use = |variable: &str, way: &Self| {
            let is_here = variable == "TMUX" || !is_set("SSH_CONNECTION");
            is_set(variable) && is_here && is_there(way.name())
        };
        let found = PROGRAMS.into_iter().find(|(variable, way)| of_use(variable, way));
        match found {
            Some((_, way)) => way,
            None if is_set("STY") && !is_set("TMUX") => Self::GnuScreen,
            None => Self::Terminal,
        }
    }

    /// What a notice calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Terminal | Self::GnuScreen => "OSC 52",
            Self::Program(words) => words.first().copied().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_goes_to_the_display_that_the_person_sees() {
        let dir = tempfile::tempdir().expect("a directory");
        let way = |programs: &[&str], variables: &[&str]| {
            let path = dir.path().join(programs.join("+"));
            std::fs::create_dir_all(&path).expect("a directory");
            for program in programs {
                std::fs::write(path.join(program), "").expect("a file");
            }
            let set = |name: &str| variables.contains(&name).then(|| "1".to_owned());
            let env = |name: &str| match name {
                "PATH" => path.to_str().map(str::to_owned),
                name => set(name),
            };
            Clipboard::of_screen(env).name()
        };
        let all = ["wl-copy", "xclip", "tmux"];
        assert_eq!(way(&all, &["WAYLAND_DISPLAY", "DISPLAY", "TMUX"]), "wl-copy");
        assert_eq!(way(&all, &["DISPLAY", "TMUX"]), "xclip");
        assert_eq!(way(&["tmux"], &["DISPLAY", "TMUX"]), "tmux");
        assert_eq!(way(&all, &["DISPLAY", "TMUX", "SSH_CONNECTION"]), "tmux");
        assert_eq!(way(&all, &["WAYLAND_DISPLAY", "SSH_CONNECTION"]), "OSC 52");
        assert_eq!(way(&[], &["WAYLAND_DISPLAY", "DISPLAY", "TMUX"]), "OSC 52");
        assert_eq!(way(&all, &[]), "OSC 52");
        let way = |variables: &[&str]| {
            Clipboard::of_screen(|name| variables.contains(&name).then(|| "1".to_owned()))
        };
        assert_eq!(way(&["STY"]), Clipboard::GnuScreen);
        assert_eq!(way(&["STY", "TMUX"]), Clipboard::Terminal);
    }
}
