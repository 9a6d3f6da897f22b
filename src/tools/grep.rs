//! Grep: files, lines or counts by a regular expression.

use crate::tools::fault::Fault;
use crate::tools::file_text::FileText;
use crate::tools::glob_pattern::as_meant;
use crate::tools::ignored::{self, Ignored};
use crate::tools::walk::{self, Files};
use crate::tools::{Context, Output, input, scoped_path, text_limit};
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::TypesBuilder;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub const DESCRIPTION: &str = "Searches the contents of files for a regular expression (Rust \
syntax). Files that git ignores and binary files are skipped. Shows the paths of matching files by \
default; output_mode content shows the lines, count the number of matching lines per file.";

/// Lines of a result when no limit is given.
const LIMIT: usize = 250;
/// Characters of a line.
const LINE: usize = 500;
/// Bytes the searcher may hold; a file with a longer line is skipped.
const HEAP: usize = 64 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// The regular expression.
    pattern: String,
    /// The directory or file to search; the working directory by default.
    path: Option<String>,
    /// Only files that match this glob, such as *.rs or src/**; !*.lock excludes.
    glob: Option<String>,
    /// Only files of this type, such as rust, py, js, go, markdown.
    r#type: Option<String>,
    /// What to show; files_with_matches by default.
    #[serde(default)]
    output_mode: Mode,
    /// Line numbers in content mode; true by default.
    #[serde(rename = "-n")]
    line_numbers: Option<bool>,
    /// Ignore case.
    #[serde(rename = "-i", default)]
    ignore_case: bool,
    /// Lines to show after each match in content mode.
    #[serde(rename = "-A")]
    after: Option<usize>,
    /// Lines to show before each match in content mode.
    #[serde(rename = "-B")]
    before: Option<usize>,
    /// Lines to show before and after each match in content mode.
    #[serde(rename = "-C")]
    around: Option<usize>,
    /// Let the pattern match across lines, and . match a line break.
    #[serde(default)]
    multiline: bool,
    /// Lines of the result to show; 250 by default, 0 for no limit but the size of a result.
    head_limit: Option<usize>,
    /// Lines of the result to skip; 0 by default.
    offset: Option<usize>,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    FilesWithMatches,
    Content,
    Count,
}

pub fn grep(arguments: &str, ctx: &Context, cancel: &CancellationToken) -> Result<Output, Fault> {
    let input: Input = input::parse("Grep", arguments)?;
    let matcher = matcher(&input)?;
    let mut searcher = searcher(&input);
    let base = walk::base(ctx, input.path.as_deref())?;
    let overrides = overrides(&input, &base)?;
    let ignored = Arc::new(Ignored::below(ctx, &base, overrides.clone()));
    let mut walk = walk::builder(ctx, &base, Some(ignored.clone()));
    filter(&mut walk, &input, overrides)?;
    let mut files = Files::of(walk.build(), ctx, cancel);
    let mut lines = Lines::new(&input, ctx.max_output);
    while let Some(entry) = files.next()? {
        let Some(file) = scoped_path::open_for_search(ctx, entry.path()) else { continue };
        let mut sink = Hits::of(entry.path(), &input, &mut lines, cancel);
        // A file that cannot be read or decoded has no matches a model could use.
        let _ = searcher.search_file(&matcher, &file, &mut sink);
        sink.finish_file();
        if lines.full {
            break;
        }
    }
    let mut output = lines.output(input.output_mode, &base, &files.left_out(&base));
    if ignored.is_cut() {
        output.summary.push_str(ignored::CUT_NOTE);
    }
    Ok(output)
}

fn matcher(input: &Input) -> Result<RegexMatcher, Fault> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(input.ignore_case).multi_line(true).crlf(takes_crlf(input));
    let pattern = if input.multiline {
        builder.dot_matches_new_line(true).line_terminator(None);
        if takes_crlf(input) { with_any_line_end(&input.pattern) } else { input.pattern.clone() }
    } else {
        if !takes_crlf(input) {
            builder.line_terminator(Some(b'\n'));
        }
        input.pattern.clone()
    };
    builder.build(&pattern).map_err(|error| Fault::argument(format!("bad pattern: {error}")))
}

/// Whether a line may end in CR LF; a pattern that names the CR means it as a character.
fn takes_crlf(input: &Input) -> bool {
    !input.pattern.contains("\\r")
}

/// The pattern with each of its line feeds as the end of a line in either form.
fn with_any_line_end(pattern: &str) -> String {
    let (mut any, mut in_class, mut is_escaped) = (String::new(), false, false);
    for c in pattern.chars() {
        let is_end = if is_escaped { c == 'n' } else { c == '\n' };
        if is_end && !in_class {
            any.truncate(any.len() - usize::from(is_escaped));
            any.push_str(r"(?:\r?\n)");
        } else {
            any.push(c);
        }
        match c {
            '[' if !is_escaped => in_class = true,
            ']' if !is_escaped => in_class = false,
            _ => {}
        }
        is_escaped = !is_escaped && c == '\\';
    }
    any
}

fn searcher(input: &Input) -> Searcher {
    let content = input.output_mode == Mode::Content;
    let context = |own: Option<usize>| {
        if content { own.or(input.around).unwrap_or(0) } else { 0 }
    };
    let line_end = match takes_crlf(input) {
        true => LineTerminator::crlf(),
        false => LineTerminator::byte(b'\n'),
    };
    SearcherBuilder::new()
        .line_terminator(line_end)
        .binary_detection(BinaryDetection::quit(0))
        .multi_line(input.multiline)
        .heap_limit(Some(HEAP))
        .before_context(context(input.before))
        .after_context(context(input.after))
        .build()
}

fn bad_filter(error: ignore::Error) -> Fault {
    Fault::argument(format!("bad filter: {error}"))
}

fn overrides(input: &Input, base: &Path) -> Result<Override, Fault> {
    let mut overrides = OverrideBuilder::new(base);
    if let Some(glob) = &input.glob {
        walk::must_be_bounded(glob)?;
        let (not, glob) = glob.strip_prefix('!').map_or(("", &**glob), |glob| ("!", glob));
        overrides.add(&format!("{not}{}", as_meant(glob, base))).map_err(bad_filter)?;
    }
    overrides.build().map_err(bad_filter)
}

fn filter(walk: &mut WalkBuilder, input: &Input, overrides: Override) -> Result<(), Fault> {
    walk.sort_by_file_path(Path::cmp).overrides(overrides);
    if let Some(name) = &input.r#type {
        let mut types = TypesBuilder::new();
        types.add_defaults().select(name);
        walk.types(types.build().map_err(bad_filter)?);
    }
    Ok(())
}

/// The lines of the result from the offset on, up to the limit.
struct Lines {
    text: Vec<String>,
    skip: usize,
    limit: usize,
    room: usize,
    matches: usize,
    files: usize,
    full: bool,
}

impl Lines {
    fn new(input: &Input, room: usize) -> Self {
        let limit = match input.head_limit.unwrap_or(LIMIT) {
            0 => usize::MAX,
            limit => limit,
        };
        let skip = input.offset.unwrap_or(0);
        Self { text: Vec::new(), skip, limit, room, matches: 0, files: 0, full: false }
    }

    fn push(&mut self, line: String) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        if self.text.len() >= self.limit || line.len() >= self.room {
            self.full = true;
            return;
        }
        self.room -= line.len() + 1;
        self.text.push(line);
    }

    fn output(self, mode: Mode, base: &Path, left_out: &str) -> Output {
        let more = if self.full { "at least " } else { "" };
        let (files, matches, base) = (self.files, self.matches, base.display());
        let mut summary = match mode {
            Mode::FilesWithMatches => format!("Found {more}{files} file(s) with matches in {base}"),
            _ => format!("Found {more}{matches} match(es) in {files} file(s) in {base}"),
        };
        if self.full {
            summary.push_str(&format!(", the first {} line(s) are shown", self.text.len()));
        }
        summary.push_str(left_out);
        if self.text.is_empty() {
            return Output::line(summary);
        }
        Output::with(summary, self.text.join("\n"))
    }
}

/// The matches of one file.
struct Hits<'a> {
    path: &'a Path,
    input: &'a Input,
    lines: &'a mut Lines,
    cancel: &'a CancellationToken,
    count: usize,
    binary: bool,
    /// Lines held back until the file is known not to be binary.
    held: Vec<String>,
}

impl<'a> Hits<'a> {
    fn of(
        path: &'a Path,
        input: &'a Input,
        lines: &'a mut Lines,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self { path, input, lines, cancel, count: 0, binary: false, held: Vec::new() }
    }

    /// Adds the lines of a file to the result, unless the file is binary.
    fn finish_file(self) {
        if self.binary || self.count == 0 {
            return;
        }
        self.lines.files += 1;
        self.lines.matches += self.count;
        let path = text_limit::name(&self.path.display());
        match self.input.output_mode {
            Mode::FilesWithMatches => self.lines.push(path),
            Mode::Count => self.lines.push(format!("{path}:{}", self.count)),
            Mode::Content => self.held.into_iter().for_each(|line| self.lines.push(line)),
        }
    }

    fn hold(&mut self, bytes: &[u8], first: Option<u64>, sign: char) {
        let path = text_limit::name(&self.path.display());
        for (number, line) in (first.unwrap_or(1)..).zip(FileText::of(bytes).text.lines()) {
            let line = text_limit::cut(line, LINE);
            self.held.push(match self.input.line_numbers {
                Some(false) => format!("{path}{sign}{line}"),
                _ => format!("{path}{sign}{number}{sign}{line}"),
            });
        }
    }

    /// Whether more of this file can still change the result.
    fn wants_more(&self) -> bool {
        // Each line needs at least one byte of the limit.
        let needed = self.lines.limit.min(self.lines.room).saturating_add(self.lines.skip);
        !self.cancel.is_cancelled() && self.held.len() <= needed
    }
}

impl Sink for Hits<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.count += 1;
        match self.input.output_mode {
            Mode::FilesWithMatches => return Ok(false),
            Mode::Count => {}
            Mode::Content => self.hold(found.bytes(), found.line_number(), ':'),
        }
        Ok(self.wants_more())
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> Result<bool, Self::Error> {
        self.hold(around.bytes(), around.line_number(), '-');
        Ok(self.wants_more())
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        self.held.push("--".into());
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, Self::Error> {
        self.binary = true;
        Ok(false)
    }
}
