//! A home with a scripted model, and a workspace that git knows, in which the lines of the texts are run.

use crate::bench::{Bench, Done, eventually};
use std::fs;

const SCRIPT: &str = r#"
[[when]]
says = "ask me"
[[when.step]]
call = [{ name = "AskPerson", args = { question = "Which name?" } }]
[[when.step]]
text = "Good: {result}"

[[when]]
says = "use the network: *"
[[when.step]]
call = [{ name = "Bash", args = { command = "{1}", needs = ["network"], reason = "it must" } }]
[[when.step]]
text = "It said: {result}"

[[when]]
says = "test"
[[when.step]]
call = [{ name = "Bash", args = { command = "cargo --version", needs = ["network"], reason = "it must" } }]
[[when.step]]
call = [{ name = "Bash", args = { command = "true", needs = ["network"], reason = "it must" } }]
[[when.step]]
text = "It said: {result}"

[[when]]
says = "ring"
text = "a bell \u0007"

[[when]]
any = true
text = "heard: {1}"
"#;

pub struct Place {
    pub bench: Bench,
}

impl Place {
    pub fn empty() -> Self {
        let bench = Bench::new();
        bench.play(SCRIPT);
        let servers = bench.without_local_models();
        bench.settings(&format!("model = \"{}\"\n{servers}", bench.model()));
        let place = Self { bench };
        fs::write(place.bench.ws().join("prompt.txt"), "a long prompt\n").expect("a workspace");
        let file = place.bench.ws().join("notes.txt");
        fs::write(&file, "the old words\n").expect("a workspace");
        place.does("git init -q && git add notes.txt");
        fs::write(&file, "the new words\n:stop --all\n").expect("a workspace");
        place
    }

    pub fn with_a_pod() -> Self {
        let place = Self::empty();
        place.does("yoi new api");
        place
    }

    /// Runs a line of a shell.
    pub fn run(&self, line: &str) -> Done {
        self.bench.finish(self.bench.shell(line).spawn().expect("a shell"))
    }

    /// Runs a line of a shell that must succeed; what it prints.
    pub fn does(&self, line: &str) -> String {
        let done = self.run(line);
        assert_eq!(done.code, Some(0), "{line}: {done:?}");
        done.out
    }

    /// Runs a line of a shell with this standard input.
    pub fn run_reading(&self, line: &str, input: &str) -> Done {
        self.bench.reading(self.bench.shell(line), input)
    }

    /// A line of a text with something in the places that it leaves open.
    pub fn filled(&self, line: &str) -> String {
        let script = self.bench.path("script.toml").display().to_string();
        let fill = [
            ("<pod>", "api"),
            ("<file>", script.as_str()),
            ("<provider>", "anthropic"),
            ("<shell>", "bash"),
            ("<NAME>", "docs"),
            ("<DIR>", "part"),
            ("<tool>:<pattern>", "Bash+network:cargo *"),
            ("provider/model", "anthropic/claude-sonnet-4-5"),
            ("<MODEL>", "anthropic/claude-sonnet-4-5"),
        ];
        fill.iter().fold(line.to_owned(), |line, (open, with)| line.replace(open, with))
    }

    pub fn state(&self, pod: &str) -> Option<String> {
        Some(self.bench.pod(pod)?["state"].as_str().expect("a state").to_owned())
    }

    pub fn until(&self, pod: &str, state: &str) {
        eventually(&format!("{pod} is {state}"), || self.state(pod).as_deref() == Some(state));
    }

    /// The names of the Pods that `yoi ls` lists.
    pub fn listed(&self) -> Vec<String> {
        let list = self.does("yoi ls");
        list.lines().skip(1).filter_map(|row| Some(row.split(' ').next()?.to_owned())).collect()
    }

    /// Lets the Pod `api` wait for a decision; the name of the request.
    pub fn request(&self) -> String {
        self.does("yoi send api 'use the network: true'");
        self.until("api", "needs_you");
        let printed = self.does("yoi inbox");
        let words = printed.split(|c: char| !c.is_alphanumeric()).map(str::to_owned);
        let mut named =
            words.filter(|word| word.len() >= 6 && word.bytes().all(|b| b.is_ascii_hexdigit()));
        named.next_back().unwrap_or_else(|| panic!("no name in {printed}"))
    }

    pub fn waits_no_more(&self) {
        self.until("api", "idle");
    }
}
