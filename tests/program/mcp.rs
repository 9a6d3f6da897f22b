//! Pods and servers of MCP: programs of other makers, good ones and bad ones.

use crate::bench::{Bench, Done};
use std::fs;

const SERVER: &str = include_str!("../mcp/server.py");

/// A bench whose settings name the server `demo`, with further lines below `[mcp.demo]`.
fn bench(mode: &str, more: &str) -> Bench {
    let bench = Bench::new();
    fs::write(bench.ws().join("server.py"), SERVER).expect("a writable workspace");
    bench.settings(&format!(
        "[mcp.demo]\ncommand = \"python3\"\nargs = [\"server.py\", \"{mode}\"]\n{more}\n"
    ));
    bench
}

impl Bench {
    /// The model calls these tools of the server one after the other, and says each result.
    fn calls(&self, calls: &[(&str, &str)]) {
        let step = |(tool, arguments): &(&str, &str)| {
            format!(
                "[[when.step]]\ntext = \"{{result}}|\"\n\
                 call = [{{ name = \"mcp__demo__{tool}\", args = '{arguments}' }}]\n"
            )
        };
        let steps: String = calls.iter().map(step).collect();
        self.play(&format!("[[when]]\nany = true\n{steps}[[when.step]]\ntext = \"{{result}}\"\n"));
    }

    /// One call of a tool by a fresh Pod that may start the server.
    fn call(&self, tool: &str, arguments: &str) -> Done {
        self.calls(&[(tool, arguments)]);
        self.go(&[])
    }

    fn go(&self, more: &[&str]) -> Done {
        let model = self.model();
        let start = ["--no-ui", "--allow", "McpServer:demo", "--model", &model, "-p", "go"];
        self.yoi(&[&start, more].concat())
    }
}

#[test]
fn a_pod_uses_the_tools_of_a_server_that_policy_lets_start() {
    let bench = bench("good", "");
    let done = bench.call("echo", r#"{"text": "hello there"}"#);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("hello there"), "{done:?}");
}
