//! The simple commands in what the parser read.

use crate::config::shell::raw::{self, Backticks};
use crate::config::shell::words::{Word, starts_commands};
use crate::config::shell::{Piece, SimpleCommand, Unreadable, inner};
use rable::{Node, NodeKind};

/// How deep texts that are given to a shell may lie in each other: `sh -c "sh -c 'x'"`.
const MAX_INNER_DEPTH: usize = 4;
/// Texts that are given to a shell and read; more are unknown commands.
const MAX_INNER_LINES: usize = 32;
/// The file that a redirection may name without reading or writing anything.
const NULL_DEVICE: &str = "/dev/null";
/// The descriptor of standard input, and the parser's value for a redirection without a number.
const STDIN: i32 = 0;
const UNNUMBERED: i32 = -1;

/// Collects the simple commands of a line.
#[derive(Default)]
pub struct Reader {
    pub commands: Vec<SimpleCommand>,
    depth: usize,
    inner: usize,
    /// Whether something in the line calculates with variables.
    calculates: bool,
    /// Whether a word has substitutions that stand in quotes. A calculation with a variable that holds them
    /// runs them.
    quotes_commands: bool,
}

/// The effect of all redirections of a command.
#[derive(Default)]
pub struct Redirections {
    /// The text on standard input, where it is known.
    pub input: Option<String>,
    /// Whether there is a here-document or a here-string.
    pub has_text: bool,
    /// Whether a file is read or written.
    files: bool,
}

impl Reader {
    /// Reads a whole line.
    pub fn line(&mut self, line: &str) -> Result<(), Unreadable> {
        let nodes = rable::parse(line, false).map_err(|_| Unreadable::NotShell)?;
        self.nodes(&nodes);
        // The parser takes `{name}<<END`, a here-document of another descriptor, for standard input.
        if line.contains("}<<") || self.calculates && self.quotes_commands {
            self.unknown();
        }
        Ok(())
    }

    /// Text that a shell is given. What cannot be read may be any command.
    pub fn inner_line(&mut self, line: Option<&str>) {
        self.depth += 1;
        self.inner += 1;
        let first = self.commands.len();
        let read = match line {
            Some(line) if self.depth <= MAX_INNER_DEPTH && self.inner <= MAX_INNER_LINES => {
                self.line(line).is_ok()
            }
            Some(_) | None => false,
        };
        if !read {
            self.unknown();
        }
        self.run_by_another(first);
        self.depth -= 1;
    }

    /// Marks the commands from this one on.
    fn run_by_another(&mut self, first: usize) {
        self.commands[first..].iter_mut().for_each(|c| c.is_run_by_another = true);
    }

    /// From now on the line counts as one that calculates with variables.
    pub fn calculates(&mut self) {
        self.calculates = true;
    }

    pub fn unknown(&mut self) {
        self.commands.push(SimpleCommand::unknown());
    }

    fn nodes<'a>(&mut self, nodes: impl IntoIterator<Item = &'a Node>) {
        for node in nodes {
            self.node(node);
        }
    }

    fn node(&mut self, node: &Node) {
        match &node.kind {
            NodeKind::Command { assignments, words, redirects } => {
                self.command(assignments, words, redirects);
            }
            NodeKind::Pipeline { commands, .. } => self.nodes(commands),
            NodeKind::List { items } => self.nodes(items.iter().map(|item| &item.command)),
            NodeKind::Negation { pipeline: command }
            | NodeKind::Time { pipeline: command, .. }
            | NodeKind::Coproc { command, .. } => {
                let first = self.commands.len();
                self.node(command);
                self.run_by_another(first);
            }
            NodeKind::Function { body, .. } => self.node(body),
            NodeKind::Subshell { body, redirects } | NodeKind::BraceGroup { body, redirects } => {
                self.around(redirects);
                self.node(body);
            }
            NodeKind::If { condition, then_body, else_body, redirects } => {
                self.around(redirects);
                self.nodes([condition, then_body].into_iter().map(AsRef::as_ref));
                self.nodes(else_body.as_deref());
            }
            NodeKind::Case { word, patterns, redirects } => {
                self.around(redirects);
                self.words(std::iter::once(word.as_ref()));
                for pattern in patterns {
                    self.words(&pattern.patterns);
                    self.nodes(pattern.body.as_ref());
                }
            }
            NodeKind::ConditionalExpr { redirects, .. }
            | NodeKind::ArithmeticCommand { redirects, .. } => {
                self.around(redirects);
                let is_command = matches!(&node.kind, NodeKind::ArithmeticCommand { raw_content, .. }
                    if !raw::is_arithmetic(&format!("{raw_content}))")));
                self.calculation(is_command || starts_commands(&format!("{:?}", node.kind)));
            }
            NodeKind::Empty | NodeKind::Comment { .. } => {}
            other => self.repeated(other),
        }
    }

    /// A loop; every other part is unknown.
    fn repeated(&mut self, kind: &NodeKind) {
        match kind {
            NodeKind::While { condition, body, redirects }
            | NodeKind::Until { condition, body, redirects } => {
                self.around(redirects);
                self.nodes([condition, body].into_iter().map(AsRef::as_ref));
            }
            NodeKind::For { words, body, redirects, .. }
            | NodeKind::Select { words, body, redirects, .. } => {
                self.around(redirects);
                let values = self.words(words.iter().flatten());
                self.assigned(&values);
                self.node(body);
            }
            NodeKind::ForArith { init, cond, incr, body, redirects } => {
                self.around(redirects);
                self.calculation([init, cond, incr].into_iter().any(|text| starts_commands(text)));
                self.node(body);
            }
            _ => self.unknown(),
        }
    }

    /// A test or a calculation of the shell itself.
    fn calculation(&mut self, starts_commands: bool) {
        self.calculates();
        self.commands.push(SimpleCommand::calculation());
        if starts_commands {
            self.unknown();
        }
    }

    /// Redirections of a group; a shell inside may read what they give.
    fn around(&mut self, redirects: &[Node]) {
        let found = self.redirections(redirects);
        if found.files || found.has_text {
            self.commands.push(SimpleCommand::calculation());
        }
    }

    /// Words that are no command; the substitutions in them are.
    fn words<'a>(&mut self, nodes: impl IntoIterator<Item = &'a Node>) -> Vec<Word> {
        nodes.into_iter().map(|node| self.word(node)).collect()
    }

    fn word(&mut self, node: &Node) -> Word {
        let word = Word::of(node);
        self.calculates |= word.calculates;
        self.quotes_commands |= word.quotes_commands();
        if word.hides_commands || is_executed(&word) {
            self.unknown();
        }
        if let NodeKind::Word { parts, value, .. } = &node.kind {
            self.backticks(value);
            for part in parts {
                if let NodeKind::CommandSubstitution { command, .. }
                | NodeKind::ProcessSubstitution { command, .. } = &part.kind
                {
                    self.node(command);
                }
            }
        }
        word
    }

    /// The parser reads commands between backticks as they are written, and lets quotes hide the end of them.
    fn backticks(&mut self, word: &str) {
        for found in raw::backticks(word) {
            match found {
                Backticks::Unescaped(line) => self.inner_line(Some(&line)),
                Backticks::Plain(line) if rable::parse(&line, false).is_ok() => {}
                Backticks::Plain(_) | Backticks::Unknown => self.unknown(),
            }
        }
    }

    fn redirections(&mut self, redirects: &[Node]) -> Redirections {
        let mut found = Redirections::default();
        for redirect in redirects {
            match &redirect.kind {
                NodeKind::Redirect { op, target, fd, varfd } => {
                    let target = self.word(target).text();
                    let is_text = op == "<<<";
                    let is_descriptor =
                        op.ends_with('&') && target.as_deref().is_some_and(is_descriptor);
                    found.has_text |= is_text;
                    found.files |= !is_text
                        && !is_descriptor
                        && op != ">&-"
                        && target.as_deref() != Some(NULL_DEVICE);
                    if varfd.is_none() && is_input(op, *fd) {
                        found.input = target.filter(|_| is_text);
                    }
                }
                NodeKind::HereDoc { content, quoted, fd, .. } => {
                    if !quoted && starts_commands(content) {
                        self.unknown();
                    }
                    found.has_text = true;
                    if [STDIN, UNNUMBERED].contains(fd) {
                        let known = *quoted || !content.contains(['$', '`', '\\']);
                        found.input = known.then(|| content.clone());
                    }
                }
                _ => self.unknown(),
            }
        }
        found
    }

    /// Bash runs substitutions in the value of a variable that it calculates with, also those that
    /// stood in quotes when the value was assigned.
    fn assigned(&mut self, values: &[Word]) {
        if values.iter().any(Word::quotes_commands) {
            self.unknown();
        }
    }

    fn command(&mut self, assignments: &[Node], words: &[Node], redirects: &[Node]) {
        let assignments = self.words(assignments);
        self.assigned(&assignments);
        let mut words = self.words(words);
        // The parser knows no option of `time` but `-p`, and takes `--` for the command.
        if words.first().is_some_and(|word| word.text().as_deref() == Some("--")) {
            words.insert(0, Word::plain("time"));
        }
        let redirections = self.redirections(redirects);
        let all: Vec<&Word> = assignments.iter().chain(&words).collect();
        let mut command = SimpleCommand::default();
        if !assignments.is_empty() {
            command.texts.push(joined(&all));
        }
        let computed = all.iter().any(|word| word.is_computed);
        let is_known = !computed && !redirections.files && !redirections.has_text;
        command.known = is_known.then(|| joined(&all));
        let words: Vec<&Word> = words.iter().collect();
        if !words.is_empty() {
            inner::texts(&words, &mut command);
        }
        self.commands.push(command);
        inner::lines(&words, &redirections, self);
    }
}

/// Variables whose values bash runs, or takes for other names of commands.
const EXECUTED: &[&str] =
    &["BASH_ALIASES", "BASH_CMDS", "BASH_ENV", "PROMPT_COMMAND", "PS0", "PS4"];

/// Whether a word assigns one of [`EXECUTED`].
fn is_executed(word: &Word) -> bool {
    let chars = word.pieces.iter().map_while(|piece| match piece {
        Piece::Char(c) | Piece::Expands(c) if !"=[+".contains(*c) => Some(*c),
        _ => None,
    });
    let name: String = chars.collect();
    word.pieces.len() > name.chars().count() && EXECUTED.contains(&name.as_str())
}

/// Whether a redirection may be one of standard input. Where the target is closed or moved (`0<&3-`) the
/// parser leaves the number out.
fn is_input(op: &str, fd: i32) -> bool {
    fd == STDIN || fd == UNNUMBERED && (op.starts_with('<') || op.starts_with(">&"))
}

fn is_descriptor(text: &str) -> bool {
    text.trim_end_matches('-').chars().all(|c| c.is_ascii_digit())
}

/// Words with a blank between them.
pub fn joined(words: &[&Word]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            pieces.push(Piece::Blank);
        }
        pieces.extend(&word.pieces);
    }
    pieces
}
