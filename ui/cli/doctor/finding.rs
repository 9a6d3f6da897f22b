//! The findings about this machine, as one page of text or as JSON.

use serde::Serialize;
use yoi::text::SafeText;

/// How good or bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    /// Works, but not as well as it could.
    Warning,
    /// Does not work.
    Broken,
}

/// One line of the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The heading that it is listed under.
    pub about: &'static str,
    pub name: String,
    pub level: Level,
    pub text: String,
    /// What a person can do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way_out: Option<String>,
}

impl Finding {
    pub fn ok(about: &'static str, name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { about, name: name.into(), level: Level::Ok, text: text.into(), way_out: None }
    }

    pub fn warning(
        about: &'static str,
        name: impl Into<String>,
        text: impl Into<String>,
        way_out: impl Into<String>,
    ) -> Self {
        let way_out = Some(way_out.into());
        Self { level: Level::Warning, way_out, ..Self::ok(about, name, text) }
    }

    pub fn broken(
        about: &'static str,
        name: impl Into<String>,
        text: impl Into<String>,
        way_out: impl Into<String>,
    ) -> Self {
        Self { level: Level::Broken, ..Self::warning(about, name, text, way_out) }
    }

    /// Redacts the texts and spells their control characters but line breaks: they hold names of files,
    /// settings and answers of providers.
    fn made_safe(mut self) -> Self {
        let safe = |text: &str| SafeText::spelled(yoi::trace::redact(text)).into_string();
        let lines = |text: &str| text.lines().map(safe).collect::<Vec<_>>().join("\n");
        self.name = safe(&self.name);
        self.text = lines(&self.text);
        self.way_out = self.way_out.as_deref().map(lines);
        self
    }
}

/// All findings, by heading.
#[derive(Clone, Debug, Default)]
pub struct Page(Vec<Finding>);

impl Page {
    pub fn new(findings: impl IntoIterator<Item = Finding>) -> Self {
        Self(findings.into_iter().map(Finding::made_safe).collect())
    }

    pub fn is_broken(&self) -> bool {
        self.0.iter().any(|finding| finding.level == Level::Broken)
    }

    /// The page for a person: names in one column, what to do below each problem.
    pub fn text(&self) -> String {
        let width = self.0.iter().map(|finding| finding.name.chars().count()).max().unwrap_or(0);
        let (mut text, mut about) = (String::new(), "");
        for finding in &self.0 {
            if finding.about != about {
                let gap = if about.is_empty() { "" } else { "\n" };
                about = finding.about;
                text.push_str(&format!("{gap}{about}\n"));
            }
            let mark = match finding.level {
                Level::Ok => "ok     ",
                Level::Warning => "warning",
                Level::Broken => "BROKEN ",
            };
            // Further lines are indented, so that none looks like a finding.
            let indent = " ".repeat(width + 13);
            let below = |text: &str, more: &str| text.replace('\n', &format!("\n{indent}{more}"));
            let (name, said) = (&finding.name, below(&finding.text, ""));
            let gap = " ".repeat(width - name.chars().count());
            text.push_str(&format!("  {mark}  {name}{gap}  {said}\n"));
            if let Some(way_out) = &finding.way_out {
                text.push_str(&format!("{indent}-> {}\n", below(way_out, "   ")));
            }
        }
        text.push_str(&format!("\n{}\n", self.summary()));
        text
    }

    /// One JSON object.
    pub fn json(&self) -> String {
        let page = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "broken": self.is_broken(),
            "findings": self.0,
        });
        page.to_string()
    }

    fn summary(&self) -> String {
        let count = |level| self.0.iter().filter(|finding| finding.level == level).count();
        match (count(Level::Broken), count(Level::Warning)) {
            (0, 0) => "everything works".into(),
            (0, warnings) => format!("everything works; warnings: {warnings}"),
            (broken, warnings) => format!("broken: {broken}, warnings: {warnings}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_aligned_and_each_remedy_stands_below_its_finding() {
        let page = Page::new([
            Finding::ok("disk", "data", "/d"),
            Finding::broken("disk", "settings", "/c is not yours", "chown it"),
            Finding::warning("host", "host", "too\n  ok  old", "write:\n[a]\nb = 1\x07"),
        ]);
        let expected = "\
disk
  ok       data      /d
  BROKEN   settings  /c is not yours
                     -> chown it

host
  warning  host      too
                       ok  old
                     -> write:
                        [a]
                        b = 1\\x07

broken: 1, warnings: 1
";
        assert_eq!(page.text(), expected);
        assert!(page.is_broken() && !Page::new([]).is_broken());
    }

    #[test]
    fn the_json_holds_every_finding_with_its_level() {
        let page = Page::new([Finding::warning("host", "host", "old sk-0123456789abc", "stop it")]);
        let json: serde_json::Value = serde_json::from_str(&page.json()).unwrap();
        let finding = serde_json::json!({
            "about": "host", "name": "host", "level": "warning", "text": "old [secret]",
            "way_out": "stop it",
        });
        assert_eq!((&json["broken"], &json["findings"][0]), (&false.into(), &finding));
    }
}
