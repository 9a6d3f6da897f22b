//! Every colour and emphasis of the screen, by role. The panes name roles, such as *error*; the looks of
//! the roles are data in `themes/*.toml`.

mod colour;
mod file;
mod ground;

pub use colour::Depth;
pub use ground::Ground;

use ratatui::style::Style;
use std::path::Path;
use std::sync::LazyLock;
use yoi::config::plain_file;

/// The built-in themes; the first is the default.
const BUILT_IN: [(&str, &str); 5] = [
    ("night", include_str!("../themes/night.toml")),
    ("day", include_str!("../themes/day.toml")),
    ("high-contrast", include_str!("../themes/high-contrast.toml")),
    ("terminal", include_str!("../themes/terminal.toml")),
    (MONO, include_str!("../themes/mono.toml")),
];
/// The theme without a single colour, which `NO_COLOR` chooses.
pub const MONO: &str = "mono";
/// Stands for `night` or `day`, as the ground of the terminal is dark or light.
pub const AUTO: &str = "auto";

/// The name of the theme that is loaded for this one over such a ground.
pub fn over(name: &str, ground: Ground) -> &str {
    match (name, ground) {
        (AUTO, Ground::Dark) => BUILT_IN[0].0,
        (AUTO, Ground::Light) => BUILT_IN[1].0,
        (name, _) => name,
    }
}

macro_rules! roles {
    ($($(#[$doc:meta])* $field:ident $variant:ident),* $(,)?) => {
        /// The meaning of a piece of the screen.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        // Some roles are used only as fields of a theme.
        #[allow(dead_code)]
        pub enum Role { #[default] $($(#[$doc])* $variant),* }

        /// A look for every role. The look of `text` is the background of the whole screen; the other
        /// roles are patched over it.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Theme {
            /// Under which it is chosen.
            pub name: String,
            $($(#[$doc])* pub $field: Style),*
        }

        impl Role {
            /// The names of all roles, as theme files write them.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];
        }

        impl Theme {
            /// The look of a role. Words leave the ground under them as it is.
            pub fn style(&self, role: Role) -> Style {
                let look = match role { $(Role::$variant => self.$field),* };
                if role == Role::Text { Style { bg: None, ..look } } else { look }
            }

            /// Whether the line and sheets can be told by their ground.
            pub fn has_grounds(&self) -> bool {
                self.raised.bg.is_some()
            }

            fn plain(name: &str) -> Self {
                Self { name: name.into(), $($field: Style::new()),* }
            }

            fn role_mut(&mut self, name: &str) -> Option<&mut Style> {
                match name { $(stringify!($field) => Some(&mut self.$field),)* _ => None }
            }
        }
    };
}

roles! {
    /// What is read: prose, names, arguments. Its ground is under everything.
    text Text,
    /// What can be skipped: ages, labels, names of tools, results as hoped, thinking, figures.
    dim Dim,
    /// Where the person is, and which keys act here.
    accent Accent,
    /// Blocked until a person acts.
    needs Needs,
    /// Not as it should be.
    warn Warn,
    /// Failed, and lines that a change removes.
    error Error,
    /// Lines that a change adds.
    added Added,
    /// Code within prose, and commands.
    code Code,
    /// Links.
    link Link,
    /// The rule between panes.
    rule Rule,
    /// The ground of the line, of sheets and of a person's message. Without a colour for it, a rule stands above the line
    /// and sheets.
    raised Raised,
    /// The ground of the row under the cursor and of selected text.
    selection Selection,
    /// Matches of a search.
    found Found,
}

impl Theme {
    /// The names that can be chosen, built-in ones first; those of `user_dir` are its `*.toml`.
    pub fn names(user_dir: Option<&Path>) -> Vec<String> {
        let built_in = BUILT_IN.iter().map(|(name, _)| *name);
        let mut names: Vec<String> =
            std::iter::once(AUTO).chain(built_in).map(str::to_owned).collect();
        let mut own = user_dir.map(file::names_in).unwrap_or_default();
        own.sort_unstable();
        own.retain(|name| !names.contains(name));
        names.extend(own);
        names
    }

    /// The theme called `name` for this terminal, and a sentence for each problem in it. A file
    /// `<user_dir>/<name>.toml` goes before the built-in theme; roles that it leaves out stay built in. A file with a
    /// problem changes nothing. `NO_COLOR` chooses the theme without colours.
    pub fn load(name: &str, user_dir: Option<&Path>) -> (Self, Vec<String>) {
        Self::load_for(name, user_dir, Depth::detect(|key| std::env::var(key).ok()))
    }

    /// As [`Theme::load`], for a terminal of this depth.
    pub fn load_for(name: &str, user_dir: Option<&Path>, depth: Depth) -> (Self, Vec<String>) {
        let name = if depth == Depth::Mono { MONO } else { name };
        let own = user_dir.map(|dir| dir.join(format!("{name}.toml")));
        let built_in = BUILT_IN.iter().find(|(known, _)| *known == name);
        let mut diagnostics = Vec::new();
        let mut theme = Self::plain(name);
        let (_, base) = built_in.unwrap_or(&BUILT_IN[0]);
        file::apply(&mut theme, base, "built in", depth, &mut diagnostics);
        match own.as_deref().map(|path| (path, plain_file::read(path))) {
            Some((path, Ok(text))) => {
                file::apply(
                    &mut theme,
                    &text,
                    &path.display().to_string(),
                    depth,
                    &mut diagnostics,
                );
            }
            Some((path, Err(error))) if error.kind() != std::io::ErrorKind::NotFound => {
                diagnostics.push(format!("{}: {error}", path.display()));
            }
            _ if built_in.is_none() => diagnostics.push(unknown(name, user_dir)),
            _ => {}
        }
        if built_in.is_none() && !diagnostics.is_empty() && own.is_none_or(|path| !path.exists()) {
            theme.name = BUILT_IN[0].0.into();
        }
        (theme, diagnostics)
    }
}

/// Refuses a name that no theme has; the sentence lists those there are.
pub fn must_exist(name: &str, user_dir: Option<&Path>) -> Result<(), String> {
    let known = Theme::names(user_dir).iter().any(|known| known == name);
    if known { Ok(()) } else { Err(unknown(name, user_dir)) }
}

/// Why this terminal shows no colours, whatever the theme.
pub fn why_mono() -> Option<&'static str> {
    colour::why_mono(|key| std::env::var(key).ok())
}

fn unknown(name: &str, user_dir: Option<&Path>) -> String {
    format!("no theme named {name}; there are {}", Theme::names(user_dir).join(", "))
}

impl Default for Theme {
    fn default() -> Self {
        static FIRST: LazyLock<Theme> =
            LazyLock::new(|| Theme::load_for(BUILT_IN[0].0, None, Depth::True).0);
        FIRST.clone()
    }
}

#[cfg(test)]
mod tests;
