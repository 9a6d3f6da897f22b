//! The projects: of the size at which a build takes seconds, and without anything from a network. A
//! command starts some milliseconds later in a Pod, whatever it does; with projects of a few lines
//! that start would be all that is measured.

use std::fs;
use std::path::Path;

/// One project and what is done with it.
pub struct Project {
    pub name: &'static str,
    /// Programs that have to be on `PATH`.
    programs: &'static [&'static str],
    /// Its files, without its repository: path and content.
    files: &'static [(&'static str, &'static str)],
    /// Command lines that make what cannot be a text here, once.
    made: &'static [&'static str],
    /// What is measured: a word and a command line.
    pub steps: &'static [(&'static str, &'static str)],
}

const COMMIT: (&str, &str) =
    ("commit", "echo done >> NOTES && git add -A && git commit -q -m done");

pub const PROJECTS: &[Project] = &[
    Project {
        name: "rust",
        programs: &["cargo", "cc", "git"],
        files: &[
            (
                "Cargo.toml",
                "[package]\nname = \"greet\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            ("src/lib.rs", RUST_LIB),
            ("src/main.rs", "fn main() {\n    println!(\"{}\", greet::greet(\"you\"));\n}\n"),
            (".gitignore", "target\n"),
        ],
        made: &[RUST_MODULES, "cargo generate-lockfile --offline"],
        steps: &[
            ("build", "cargo build --offline --quiet"),
            ("test", "cargo test --offline --quiet"),
            COMMIT,
        ],
    },
    Project {
        name: "node",
        programs: &["node", "npm", "git"],
        files: &[
            ("package.json", NODE_PACKAGE),
            (
                "greet.js",
                "const pad = require('pad');\nmodule.exports = (who) => pad(`hello ${who}`);\n",
            ),
            ("greet.test.js", NODE_TEST),
            ("pad/package.json", "{ \"name\": \"pad\", \"version\": \"1.0.0\" }\n"),
            ("pad/index.js", "module.exports = (text) => text.padEnd(20);\n"),
            (".gitignore", "node_modules\n"),
        ],
        made: &[NODE_PACKAGES],
        steps: &[
            ("build", "npm install --offline --no-audit --no-fund --silent"),
            ("test", "npm test --silent"),
            COMMIT,
        ],
    },
    Project {
        name: "python",
        programs: &["python3", "git"],
        files: &[
            ("greet.py", "import pad\n\n\ndef greet(who):\n    return pad.pad(f'hello {who}')\n"),
            ("test_greet.py", PYTHON_TEST),
            ("index/make.py", PYTHON_INDEX),
            (".gitignore", ".venv\n__pycache__\n"),
        ],
        made: &["python3 index/make.py"],
        steps: &[
            ("environment", "python3 -m venv .venv"),
            (
                "install",
                ".venv/bin/pip --disable-pip-version-check install -q --index-url file://$PWD/index pad",
            ),
            ("test", ".venv/bin/python -m unittest -q"),
            COMMIT,
        ],
    },
    Project {
        name: "go",
        programs: &["go", "git"],
        files: &[
            ("go.mod", "module example.com/greet\n\ngo 1.19\n"),
            (
                "greet.go",
                "package greet\n\nfunc Greet(who string) string { return \"hello \" + who }\n",
            ),
            ("greet_test.go", GO_TEST),
            ("cmd/greet/main.go", GO_MAIN),
        ],
        made: &[],
        // Without the results that the build before left in the cache.
        steps: &[
            ("build", "go build -a ./..."),
            ("test", "go test -count=1 ./... && go vet ./..."),
            COMMIT,
        ],
    },
    Project {
        name: "git",
        programs: &["git"],
        files: &[("README", "a repository\n")],
        made: &[
            "for d in $(seq 200); do mkdir d$d; for f in $(seq 100); do seq $d $((d + f)) > d$d/$f; done; done",
        ],
        steps: &[
            ("status", "for f in d*/7; do echo more >> $f; done; git status --short > /dev/null"),
            ("commit", "git add -A && git commit -q -m more"),
            (
                "rebase",
                "git switch -q -c side HEAD~1 && echo x > side && git add side && \
                 git commit -q -m side && git rebase -q main",
            ),
            (
                "clone",
                "git clone -q file://$PWD .copy && git -C .copy log --stat > /dev/null && rm -rf .copy",
            ),
        ],
    },
];

const RUST_LIB: &str = "/// Says hello.
pub fn greet(who: &str) -> String {
    format!(\"hello {who}\")
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_greets() {
        assert_eq!(super::greet(\"you\"), \"hello you\");
    }
}
";
/// Adds modules with types, traits and tests.
const RUST_MODULES: &str = "for n in $(seq 120); do
  echo \"pub mod part$n;\" >> src/lib.rs
  cat > src/part$n.rs <<END
use std::collections::BTreeMap;
use std::fmt::{self, Display};
/// Words and how often they were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Count$n<K: Ord> { seen: BTreeMap<K, usize>, all: usize }
impl<K: Ord + Clone + Display> Count$n<K> {
    pub fn see(&mut self, key: K) -> usize { self.all += 1; *self.seen.entry(key).and_modify(|n| *n += 1).or_insert(1) }
    pub fn most(&self) -> Vec<(K, usize)> {
        let mut all: Vec<_> = self.seen.iter().map(|(key, n)| (key.clone(), *n)).collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all
    }
}
impl<K: Ord + Display> Display for Count$n<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.seen.iter().try_for_each(|(key, n)| writeln!(f, \"{key}: {n} of {}\", self.all))
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn it_counts() {
        let mut count = Count$n::default();
        \"a b a c a\".split(' ').for_each(|word| drop(count.see(word.to_owned())));
        assert_eq!(count.most()[0], (\"a\".to_owned(), 3));
        assert!(count.to_string().starts_with(\"a: 3 of 5\"));
    }
}
END
done";
/// Adds packages that the package depends on, and tests.
const NODE_PACKAGES: &str = "for n in $(seq 150); do
  mkdir -p parts/p$n
  echo \"{ \\\"name\\\": \\\"p$n\\\", \\\"version\\\": \\\"1.0.0\\\" }\" > parts/p$n/package.json
  echo \"module.exports = (text) => text + $n;\" > parts/p$n/index.js
  echo \"p$n file:parts/p$n\"
done | node -e '
  const fs = require(\"fs\");
  const about = JSON.parse(fs.readFileSync(\"package.json\"));
  for (const line of fs.readFileSync(0, \"utf8\").trim().split(\"\\n\")) {
    const [name, place] = line.split(\" \");
    about.dependencies[name] = place;
  }
  fs.writeFileSync(\"package.json\", JSON.stringify(about, null, 2));
'; for n in $(seq 12); do sed \"s/it greets/it greets $n times/\" greet.test.js > greet$n.test.js; done";
const NODE_PACKAGE: &str = "{
  \"name\": \"greet\",
  \"version\": \"1.0.0\",
  \"main\": \"greet.js\",
  \"scripts\": { \"test\": \"node --test\" },
  \"dependencies\": { \"pad\": \"file:pad\" }
}
";
const NODE_TEST: &str = "const test = require('node:test');
const assert = require('node:assert');
test('it greets', () => assert.match(require('./greet')('you'), /hello you/));
";
const PYTHON_TEST: &str = "import unittest

import greet


class Greets(unittest.TestCase):
    def test_it_greets(self):
        self.assertIn('hello you', greet.greet('you'))
";
/// Writes a wheel and the page of an index that names it.
const PYTHON_INDEX: &str = "import pathlib
import zipfile

here = pathlib.Path(__file__).parent / 'pad'
here.mkdir(exist_ok=True)
name = 'pad-1.0-py3-none-any.whl'
with zipfile.ZipFile(here / name, 'w') as wheel:
    wheel.writestr('pad.py', 'def pad(text):\\n    return text.ljust(20)\\n')
    info = 'pad-1.0.dist-info/'
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: pad\\nVersion: 1.0\\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + 'RECORD', '')
(here / 'index.html').write_text(f'<a href=\"{name}\">{name}</a>\\n')
";
const GO_TEST: &str = "package greet

import \"testing\"

func TestGreet(t *testing.T) {
\tif Greet(\"you\") != \"hello you\" {
\t\tt.Fail()
\t}
}
";
const GO_MAIN: &str = "package main

import (
\t\"fmt\"
\t\"net/http\"

\t\"example.com/greet\"
)

func main() {
\thttp.HandleFunc(\"/\", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, greet.Greet(r.URL.Path)) })
}
";

impl Project {
    /// A program that is needed and not there.
    pub fn missing(&self) -> Option<&'static str> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
        self.programs.iter().copied().find(|name| !found(name))
    }

    /// Writes its files, and makes the rest with `run`, which runs a command line in its directory. The
    /// repository is packed: it is copied before each run.
    pub fn write(&self, dir: &Path, run: impl Fn(&str)) {
        for (name, content) in self.files {
            let file = dir.join(name);
            fs::create_dir_all(file.parent().expect("a directory")).expect("a new directory");
            fs::write(file, content).expect("a new file");
        }
        self.made.iter().for_each(|line| run(line));
        run("git init -q -b main . && git add -A && git commit -q -m first && git gc -q");
    }
}
