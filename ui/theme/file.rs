//! A theme file: `[palette]` gives colours names, `[roles]` gives roles looks, `[ansi]` replaces
//! some of those looks on terminals with 16 colours.

use crate::theme::colour::{Depth, fit};
use crate::theme::{Role, Theme};
use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use toml::Spanned;

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct File {
    palette: BTreeMap<String, Spanned<String>>,
    roles: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
    ansi: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
}

/// One role's table. Colours are names of the palette, `#rrggbb`, a named colour, or an index.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct StyleTable {
    fg: Option<String>,
    bg: Option<String>,
    underline_color: Option<String>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    reverse: bool,
    strike: bool,
}

/// The names of the theme files in a directory; none when it cannot be read.
pub fn names_in(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    paths
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .filter_map(|path| path.file_stem().and_then(|stem| stem.to_str()).map(String::from))
        .collect()
}

/// Applies the theme file `text` to `theme`. Problems are reported with file, line and column; a file with one
/// changes nothing.
pub fn apply(
    theme: &mut Theme,
    text: &str,
    file: &str,
    depth: Depth,
    diagnostics: &mut Vec<String>,
) {
    let mut changed = theme.clone();
    let mut found = Vec::new();
    apply_roles(&mut changed, text, file, depth, &mut found);
    if found.is_empty() {
        *theme = changed;
    }
    diagnostics.extend(found);
}

fn apply_roles(
    theme: &mut Theme,
    text: &str,
    file: &str,
    depth: Depth,
    diagnostics: &mut Vec<String>,
) {
    let parsed: File = match toml::from_str(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            diagnostics.push(diagnostic(text, file, at, error.message()));
            return;
        }
    };
    let palette = palette(&parsed, text, file, diagnostics);
    let mut sections = vec![&parsed.roles];
    if depth == Depth::Ansi {
        sections.push(&parsed.ansi);
    }
    for (role, table) in sections.into_iter().flatten() {
        match read(table.get_ref(), &palette, depth) {
            Ok(style) => match theme.role_mut(role.get_ref()) {
                Some(slot) => *slot = style,
                None => {
                    let known = Role::NAMES.join(", ");
                    let why = format!("no role named {}; there are {known}", role.get_ref());
                    diagnostics.push(diagnostic(text, file, role.span().start, &why));
                }
            },
            Err(why) => diagnostics.push(diagnostic(text, file, table.span().start, &why)),
        }
    }
}

fn palette(
    parsed: &File,
    text: &str,
    file: &str,
    diagnostics: &mut Vec<String>,
) -> BTreeMap<String, Color> {
    let mut palette = BTreeMap::new();
    for (name, colour) in &parsed.palette {
        match Color::from_str(colour.get_ref()) {
            Ok(value) => drop(palette.insert(name.clone(), value)),
            Err(_) => {
                let why = format!("{} is no colour", colour.get_ref());
                diagnostics.push(diagnostic(text, file, colour.span().start, &why));
            }
        }
    }
    palette
}

fn read(
    table: &toml::Value,
    palette: &BTreeMap<String, Color>,
    depth: Depth,
) -> Result<Style, String> {
    let table = match table {
        toml::Value::String(fg) => StyleTable { fg: Some(fg.clone()), ..StyleTable::default() },
        other => {
            StyleTable::deserialize(other.clone()).map_err(|error| error.message().to_owned())?
        }
    };
    let colour = |name: &Option<String>| -> Result<Option<Color>, String> {
        let Some(name) = name else { return Ok(None) };
        let known = palette.get(name).copied().or_else(|| Color::from_str(name).ok());
        let colour = known.ok_or_else(|| format!("{name} is no colour and not in the palette"))?;
        Ok(fit(colour, depth))
    };
    let mut style = Style::new();
    style.fg = colour(&table.fg)?;
    style.bg = colour(&table.bg)?;
    style.underline_color = colour(&table.underline_color)?;
    for (wanted, modifier) in [
        (table.bold, Modifier::BOLD),
        (table.dim, Modifier::DIM),
        (table.italic, Modifier::ITALIC),
        (table.underline, Modifier::UNDERLINED),
        (table.reverse, Modifier::REVERSED),
        (table.strike, Modifier::CROSSED_OUT),
    ] {
        if wanted {
            style = style.add_modifier(modifier);
        }
    }
    Ok(style)
}

fn diagnostic(text: &str, file: &str, at: usize, why: &str) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    format!("{file}:{line}:{column}: {why}")
}
