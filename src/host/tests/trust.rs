//! What the settings file of a workspace gets when a person trusts it, and what ends that.

use super::*;
use crate::protocol::{Verdict, WorkspaceFile};

const RULE: &str =
    "[[permissions.rule]]\ntool = 'Write'\npattern = '*/w/*.txt'\naction = 'allow'\n";

const SCRIPT: &str = r#"
[[when]]
says = "write *"
[[when.step]]
call = [{ name = "Write", args = { file_path = "{cwd}/{1}.txt", content = "x" } }]
[[when.step]]
text = "Done."
"#;

impl Bench {
    pub fn write_workspace_file(&self, text: &str) {
        std::fs::create_dir_all(self.root.join("w/.yoi")).unwrap();
        std::fs::write(self.root.join("w/.yoi/config.toml"), text).unwrap();
    }

    async fn trust(&self, sha256: Option<&str>) -> Result<WorkspaceFile, String> {
        let workspace = self.root.join("w");
        let method = Method::Trust { workspace, sha256: sha256.map(str::to_owned) };
        match self.client.call(None, method).await {
            Ok(Event::WorkspaceFile(file)) => Ok(file),
            Ok(other) => panic!("{other:?}"),
            Err(refusal) => Err(refusal.message),
        }
    }

    /// Trusts the file as it is.
    async fn trust_now(&self) -> WorkspaceFile {
        let shown = self.trust(None).await.unwrap();
        self.trust(Some(&shown.sha256)).await.unwrap()
    }

    /// Whether a write waits for an approval, which is then denied.
    async fn write_is_asked_about(&mut self, pod: &PodName, name: &str) -> bool {
        self.call(pod, Method::say(format!("write {name}"))).await.unwrap();
        let over =
            |event: &Event| matches!(event, Event::ApprovalRequested { .. } | Event::RunEnd { .. });
        let Event::ApprovalRequested { approval } = self.next(over).await else { return false };
        let verdict = Verdict::Deny { reason: "no".into() };
        let deny = Method::Decide { approval: approval.id, verdict };
        self.client.call(None, deny).await.unwrap();
        self.next(|event| matches!(event, Event::RunEnd { .. })).await;
        true
    }
}

#[tokio::test]
async fn rules_that_allow_count_while_the_content_that_was_shown_is_trusted() {
    let mut bench = Bench::with_settings("[permissions]\ndefault = 'ask'\n").await;
    let script = bench.root.join("script.toml");
    std::fs::write(&script, SCRIPT).unwrap();
    let refused = bench.trust(None).await.unwrap_err();
    assert!(refused.starts_with("there is nothing to trust: there is no "), "{refused}");
    bench.write_workspace_file("a = [");
    let refused = bench.trust(None).await.unwrap_err();
    assert!(refused.starts_with("there is nothing to trust: "), "{refused}");
    assert!(refused.contains("config.toml:1:") && refused.contains("unclosed array"), "{refused}");
    bench.write_workspace_file(RULE);
    let pod = bench.new_pod(Some(&script)).await.name;
    assert!(bench.write_is_asked_about(&pod, "a").await, "nothing is trusted yet");
    let shown = bench.trust(None).await.unwrap();
    assert_eq!(shown.changes, ["permissions.rule = allow Write: */w/*.txt"]);
    assert!(!shown.trusted);
    assert!(bench.write_is_asked_about(&pod, "b").await, "showing it trusts nothing");
    assert!(bench.trust(Some(&shown.sha256)).await.unwrap().trusted);
    assert!(!bench.write_is_asked_about(&pod, "c").await);
    assert!(bench.root.join("w/c.txt").exists() && !bench.root.join("w/a.txt").exists());

    let mut bench = bench.restarted().await;
    assert!(bench.trust(None).await.unwrap().trusted, "also after a restart");
    bench.write_workspace_file(&format!("{RULE}# changed\n"));
    bench.call(&pod, Method::RestorePods { tree: false, plan: false }).await.unwrap();
    assert!(bench.write_is_asked_about(&pod, "d").await, "another content is not trusted");
    let refused = bench.trust(Some(&shown.sha256)).await.unwrap_err();
    assert!(refused.contains("changed after it was shown"), "{refused}");
    assert!(bench.write_is_asked_about(&pod, "e").await);
}

#[tokio::test]
async fn a_trust_is_listed_with_what_it_allows_and_ends_when_it_is_revoked() {
    let mut bench = Bench::with_settings("[permissions]\ndefault = 'ask'\n").await;
    let script = bench.root.join("script.toml");
    std::fs::write(&script, SCRIPT).unwrap();
    bench.write_workspace_file(RULE);
    let pod = bench.new_pod(Some(&script)).await.name;
    let file = bench.trust_now().await;
    let Event::Policy { rules, trusts, .. } = bench.call(&pod, Method::ListPolicy).await.unwrap()
    else {
        panic!()
    };
    let source = format!("{}, which you trust", file.file.display());
    assert_eq!(rules.iter().filter(|rule| rule.source == source).count(), 1, "{rules:#?}");
    let [trust] = trusts.as_slice() else { panic!("{trusts:?}") };
    assert_eq!((&trust.workspace, &trust.sha256), (&bench.root.join("w"), &file.sha256));
    let revoke = Method::Revoke { rule: trust.id };
    let ended = bench.client.call(None, revoke.clone()).await.unwrap();
    let Event::Policy { trusts: ended, .. } = ended else { panic!() };
    assert_eq!(ended, trusts);
    assert!(bench.client.call(None, revoke).await.is_err(), "it was revoked already");
    assert!(bench.write_is_asked_about(&pod, "a").await);
}

#[tokio::test]
async fn a_provider_of_a_workspace_is_found_when_its_file_is_trusted_and_needs_a_consent_before_it_sends()
 {
    let bench = Bench::with_settings("provider.ollama.base_url = 'http://127.0.0.1:9'\nprovider.lmstudio.base_url = 'http://127.0.0.1:9'\n").await;
    bench.write_workspace_file(
        "model = 'near/m'\n[provider.near]\nwire = 'openai_chat'\nkey_env = []\ndefault_model = 'm'\n\
         base_url = 'http://127.0.0.1:9/v1'\n[models.'near/m']\nwindow = 1000\n",
    );
    let before = bench.new_pod(None).await;
    assert_eq!(before.model, "", "{before:?}");
    bench.trust_now().await;
    let after = bench.new_pod(None).await;
    assert_eq!(after.model, "near/m");
    assert!(after.model_sends.is_some(), "{after:?}");
    let refused = bench.call(&after.name, Method::say("hello")).await.unwrap_err().message;
    assert!(refused.contains("nothing was sent"), "{refused}");
}
