//! Repositories that a command makes: git of a person who works in the repository around them enters those at gitlinks,
//! with their configuration and hooks.

use crate::escape::cell::{Cell, no_world_to_test};
use crate::escape::git::{git, repository};
use std::fs;
use std::path::Path;

/// Makes a repository `$1` with a commit, and a program that its git starts as `$2` says.
const MAKE: &str = r#"
make() {
    git init -q "$1"; here=$PWD; cd "$1"
    git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
    printf '#!/bin/sh\ntouch %s/ran\n' "$here" > x.sh; chmod +x x.sh
    case $2 in
    monitor) git config core.fsmonitor ./x.sh ;;
    include) printf '[core]\nfsmonitor = ./x.sh\n' > .git/more; git config include.path more ;;
    hook) mkdir -p .git/hooks; cp x.sh .git/hooks/post-index-change; touch -d '1 hour ago' x.sh; git add x.sh; touch x.sh ;;
    esac
    cd "$here"
}
link() { git update-index --add --cacheinfo 160000,$(git -c core.fsmonitor= -C "$1" rev-parse HEAD),"$1"; }
"#;

/// Runs the git commands of an ordinary day, and fails if one of them started a program of the workspace.
#[track_caller]
fn person_is_safe(ws: &Path, attack: &str) {
    for words in [["status", "-s"], ["diff", "--stat"], ["add", "-u"]] {
        let mut git = std::process::Command::new("git");
        // Its exit code does not matter: a broken repository starts nothing either.
        git.args(words).current_dir(ws).output().unwrap();
    }
    assert!(!ws.join("ran").exists(), "{attack}");
}

fn attacked() -> Cell {
    let cell = repository();
    git(&cell.path("ws"), &["commit", "-q", "--allow-empty", "-m", "x"]);
    cell
}

#[tokio::test]
async fn a_new_repository_at_a_new_gitlink_starts_nothing() {
    if no_world_to_test() {
        return;
    }
    for attack in [
        "make sub monitor; link sub",
        "make sub hook; link sub",
        "make sub include; link sub",
        "mkdir deep; make deep/sub monitor; link deep/sub",
        "make sub clean; cd sub; make in monitor; link in; cd ..; link sub",
        "make sub monitor; mv sub/.git elsewhere; echo 'gitdir: ../elsewhere' > sub/.git; link sub",
        "make sub monitor; mv sub/.git elsewhere; ln -s ../elsewhere sub/.git; link sub",
        "make a clean; make b monitor; mkdir c; git -C a config core.worktree ../../c; mv b c/in; link a; \
         (cd c; GIT_DIR=../a/.git git update-index --add --cacheinfo 160000,$(git -C in -c core.fsmonitor= rev-parse HEAD),in)",
        "make sub monitor; link sub; git update-index --split-index",
        "make sub monitor; link sub; git commit -q -m x",
    ] {
        let cell = attacked();
        let did = cell.run(&format!("{MAKE}{attack}; rm -f ran")).await;
        did.undone(1);
        person_is_safe(&cell.path("ws"), attack);
        assert!(cell.run("git status").await.ended.undone.is_empty());
    }
}

#[tokio::test]
async fn a_gitlink_and_its_repository_may_come_from_two_commands() {
    if no_world_to_test() {
        return;
    }
    let cell = attacked();
    let made = cell.run(&format!("{MAKE} make sub monitor")).await;
    let [said] = made.ended.undone.as_slice() else { panic!("{made:?}") };
    let config = cell.path("ws/sub/.git/config");
    let begins = format!("{} sets core.fsmonitor: ", config.display());
    assert!(said.starts_with(&begins), "{said}");
    assert!(!fs::read_to_string(config).unwrap().contains("fsmonitor"));
    cell.run(&format!("{MAKE} link sub; rm -f ran")).await.undone(0);
    person_is_safe(&cell.path("ws"), "two commands");

    let cell = attacked();
    fs::create_dir_all(cell.path("ws/deep")).unwrap();
    let link =
        "make deep/sub clean; link deep/sub; git commit -q -m x; rm -rf deep/sub; mkdir deep/sub";
    let did = cell.run(&format!("{MAKE}{link}")).await;
    assert!(did.ended.undone.is_empty(), "{did:?}");
    let did = cell.run(&format!("{MAKE} make deep/sub monitor; rm -f ran")).await;
    did.undone(1);
    person_is_safe(&cell.path("ws"), "a repository at an empty submodule");
}

#[tokio::test]
async fn no_second_name_and_no_address_in_a_repository_of_a_pod_leads_to_a_program() {
    if no_world_to_test() {
        return;
    }
    for (attack, file) in [
        ("mkdir -p x; ln sub/.git/config x/c", "config"),
        (
            "git init -q other; mkdir -p x; echo ../../other/.git > x/c; ln x/c sub/.git/commondir",
            "commondir",
        ),
    ] {
        let cell = Cell::new();
        let did = cell.run(&format!("git init -q sub; {attack}")).await;
        did.well();
        did.undone(1);
        assert!(!cell.path("ws/sub/.git").join(file).exists(), "{attack}: {:?}", did.ended);
    }
    for address in ["ext::touch ran", "--upload-pack=./x"] {
        let cell = Cell::new();
        let set = format!(
            "git -C sub config branch.main.remote '{address}'; git -C sub config remote.o.url '{address}'"
        );
        cell.run(&format!("git init -q sub; {set}")).await.undone(1);
        let config = fs::read_to_string(cell.path("ws/sub/.git/config")).unwrap();
        assert!(!config.contains(address), "{config}");
    }
    // With the first ones git fetches whenever a person looks at the repository, and the name of a remote is an argument of git.
    let option = "git -C sub config --file .git/config 'remote.--upload-pack=touch ran;git-upload-pack.url' /srv/x";
    for set in [
        "git -C sub config extensions.partialclone o",
        "git -C sub config remote.o.url /srv/x; git -C sub config remote.o.promisor true",
        option,
    ] {
        let cell = Cell::new();
        let did = cell.run(&format!("git init -q sub; {set}")).await;
        did.undone(1);
        let config = fs::read_to_string(cell.path("ws/sub/.git/config")).unwrap();
        for word in ["partialclone", "promisor", "upload"] {
            assert!(!config.contains(word), "{config}");
        }
    }
}

/// A repository may come from several commands, each of which leaves it without a program, or no repository at all.
#[tokio::test]
async fn no_number_of_commands_makes_a_repository_that_starts_a_program() {
    if no_world_to_test() {
        return;
    }
    let store = "mkdir -p store/objects store/refs; printf '[core]\nfsmonitor = ./x.sh\nrepositoryformatversion = 0\n' > store/config; \
                 printf '#!/bin/sh\ntouch %s/ran\n' $PWD > x.sh; chmod +x x.sh; cp x.sh store/x.sh";
    let head = "echo 'ref: refs/heads/x' > store/HEAD";
    for commands in [
        [store, head, "true"],
        [store, "mkdir sub; echo 'gitdir: ../store' > sub/.git", head],
        ["mkdir sub; echo 'gitdir: ../store' > sub/.git", store, head],
        [store, "mv store .git", "echo 'ref: refs/heads/x' > .git/HEAD"],
        [store, "mkdir sub; ln -s ../store sub/.git", head],
        [
            "mkdir w; echo ../store > w/commondir; echo 'ref: refs/heads/x' > w/HEAD",
            store,
            "mkdir sub; echo 'gitdir: ../w' > sub/.git",
        ],
        [
            store,
            "mkdir w; echo ../store > w/commondir; echo 'ref: refs/heads/x' > w/HEAD; mkdir sub; echo 'gitdir: ../w' > sub/.git",
            head,
        ],
        [
            "git init -q sub",
            "git init -q other; echo ../../other/.git > sub/.git/commondir",
            "git -C other config core.fsmonitor ./x.sh",
        ],
        [
            "git init -q sub",
            "mkdir x; mv sub/.git x/.git; git -C x/.git config core.fsmonitor ./x.sh",
            "mv x/.git sub/.git",
        ],
        [
            "git init -q sub",
            "git -C sub config extensions.worktreeConfig true",
            "printf '[core]\nfsmonitor = ./x.sh\n' > sub/.git/config.worktree",
        ],
        [
            "git init -q sub; chmod 0 sub",
            "chmod 755 sub; git -C sub config core.fsmonitor ./x.sh; chmod 0 sub",
            "chmod 755 sub",
        ],
    ] {
        let cell = Cell::new();
        fs::write(cell.path("ws/x.sh"), "#!/bin/sh\ntouch ran\n").unwrap();
        for command in commands {
            cell.run(&format!("{command}; rm -f ran")).await;
        }
        for dir in [".", "sub", "store", "w", "other"].map(|dir| cell.path("ws").join(dir)) {
            if dir.is_dir() {
                std::process::Command::new("git").arg("status").current_dir(&dir).output().unwrap();
                for ran in [dir.join("ran"), cell.path("ws/ran"), dir.join("../ran")] {
                    assert!(!ran.exists(), "{commands:?} in {}", dir.display());
                }
            }
        }
    }
}

#[tokio::test]
async fn what_a_command_puts_into_a_repository_of_its_pod_is_kept_for_the_person() {
    let cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    cell.run("git init -q own && git -C own remote add o ../up").await.well();
    let did = cell
        .run("cd own && git config core.editor evil && git config user.name 'J\u{f6}' && echo x > .git/hooks/pre-commit && echo x > .git/hooks/a.sample")
        .await;
    did.well();
    did.undone(2);
    let config = fs::read_to_string(cell.path("ws/own/.git/config")).unwrap();
    assert!(
        config.contains("../up") && config.contains("J") && !config.contains("evil"),
        "{config}"
    );
    assert!(!cell.path("ws/own/.git/hooks/pre-commit").exists());
    assert!(cell.path("ws/own/.git/hooks/a.sample").exists());
    let moved: Vec<_> = did
        .ended
        .undone
        .iter()
        .filter_map(|said| {
            let place = said.split_once(" moved to ")?.1.split(',').next()?;
            fs::read_to_string(place).ok()
        })
        .collect();
    assert!(
        moved.iter().any(|text| text.contains("evil")) && moved.contains(&"x\n".to_owned()),
        "{moved:?}"
    );
    // What a person sets there is the person's from then on.
    git(&cell.path("ws/own"), &["config", "core.editor", "vi"]);
    cell.run("git -C own config core.editor evil").await.refused();
    cell.run("rm -rf own").await.refused();
    let config = fs::read_to_string(cell.path("ws/own/.git/config")).unwrap();
    assert!(config.contains("editor = vi"), "{config}");
}

#[tokio::test]
async fn a_workspace_without_a_repository_gets_none_that_starts_a_program() {
    if no_world_to_test() {
        return;
    }
    let bare = "git init -q --bare .; git config core.bare false; git config core.worktree .";
    for attack in [
        "make . monitor",
        "git init -q; git config core.hooksPath .",
        &format!("{bare}; git config core.fsmonitor ./x.sh"),
    ] {
        let cell = Cell::new();
        let did = cell.run(&format!("{MAKE}{attack}; rm -f ran")).await;
        did.undone(1);
        person_is_safe(&cell.path("ws"), attack);
    }
}

#[tokio::test]
async fn ordinary_repositories_of_a_command_stay_and_are_its_pods_own() {
    let cell = attacked();
    if no_world_to_test() {
        return;
    }
    let ordinary = "mkdir deep && make other clean && git clone -q other deep/sub && link deep/sub && \
                    git -C deep/sub config user.email a@b && git -C deep/sub config commit.gpgsign false && \
                    git -C deep/sub remote add up https://example.org/x && git commit -q -m x";
    let did = cell.run(&format!("set -e; {MAKE} {ordinary}")).await;
    did.well();
    assert!(did.ended.undone.is_empty(), "{did:?}");
    cell.run("git -C deep/sub config core.pager x").await.undone(1);
    cell.run("echo > deep/sub/.git/hooks/pre-commit").await.undone(1);
    assert!(!cell.path("ws/deep/sub/.git/hooks/pre-commit").exists());
    let commit = "cd deep/sub && git commit -q --allow-empty -m y && cd ../.. && git add deep/sub && git commit -q -m y";
    let did = cell.run(commit).await;
    did.well();
    assert!(did.ended.undone.is_empty(), "{did:?}");

    let cell = Cell::new();
    let did = cell.run("git init -q && git add . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x").await;
    did.well();
    assert!(did.ended.undone.is_empty(), "{did:?}");
}

/// File tools write the settings, before a command makes the rest of the repository.
#[tokio::test]
async fn settings_that_were_there_before_their_repository_start_nothing() {
    if no_world_to_test() {
        return;
    }
    for before in
        ["config", "config HEAD", "config objects/a refs/a", "hooks/post-index-change config"]
    {
        let cell = attacked();
        let src = cell.path("ws/src");
        for name in before.split(' ') {
            let (text, file) = match name {
                "config" => (
                    format!(
                        "[core]\nbare = false\nworktree = {}\nfsmonitor = touch ran; true\n",
                        src.display()
                    ),
                    src.join(name),
                ),
                "HEAD" => ("ref: refs/heads/main\n".to_owned(), src.join(name)),
                _ => (String::new(), src.join(name)),
            };
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let rest = "cd src; mkdir -p objects refs; echo 'ref: refs/heads/main' > HEAD";
        cell.run(rest).await;
        person_is_safe(&src, before);
    }
}
