//! The decision of policy on a call before it starts: it passes, it waits for an approval, or it is
//! denied.

use crate::config::policy::{Rules, Said, Subject, exactly};
use crate::protocol::{Action, ApprovalRequest, ErrorCode, Pattern, PodName, Refusal};
use crate::run::Run;
use crate::run::batch::Call;
use crate::run::details::details;
use crate::sandbox::Need;
use crate::scope::{Permission, Rule};
use crate::store::StoredRule;
use crate::tools::{self, PathThreads, Touch};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;

/// The arguments that name the subject of a call of an external tool.
const TELLING: &[&str] = &["command", "file_path", "path", "pattern", "query", "url", "name"];
/// Bytes of an action in an approval request: it is shown whole, or the call is refused.
const MAX_ACTION: usize = 16 * 1024;
/// The same for the details of a call, such as the text that `Write` writes.
const MAX_DETAILS: usize = 32 * 1024;

/// The policy that binds a run.
#[derive(Clone)]
pub struct Policy {
    pub rules: Arc<Rules>,
    pub relations: Arc<dyn FamilyView>,
    pub walls: Walls,
}

/// Whether commands are kept inside the scope here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walls {
    Hold,
    /// Every command waits for an approval.
    Missing,
}

/// What only the host knows: the family, and the leases.
pub trait FamilyView: Send + Sync {
    /// The Pod's ancestors, the root first.
    fn lineage(&self) -> Vec<PodName>;
    /// Whether a Pod of this name is a peer of this one.
    fn is_peer(&self, name: &str) -> bool;
    /// Why a call of a Pod tool would be refused by the host now; `None` for every other tool.
    fn unreachable(&self, tool: &str, arguments: &str) -> Option<String>;
    /// Adds a rule to the Pod's lease. When it resolves, the run's scope has it.
    fn extend(&self, rule: Rule) -> BoxFuture<'static, Result<(), Refusal>>;
    /// Whether [`FamilyView::extend`] would add this rule now; changes nothing.
    fn could_extend(&self, rule: Rule) -> BoxFuture<'static, Result<(), Refusal>>;
}

/// The decision on a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    Allow(Grant),
    NeedsApproval(Box<ApprovalDraft>),
    /// With the reason for the model.
    Deny(String),
}

/// What an approved call may do beyond the scope.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Grant {
    pub(crate) needs: Vec<Need>,
    pub(crate) lease: Option<Rule>,
}

/// What an approval request says of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApprovalDraft {
    pub(crate) action: String,
    pub(crate) details: Option<String>,
    pub(crate) because: String,
    pub(crate) reason: Option<String>,
    pub(crate) rule: Pattern,
    pub(crate) grant: Grant,
}

/// What a call needs.
#[derive(Clone, Debug, Default, PartialEq)]
struct Claim {
    subject: Subject,
    grant: Grant,
    /// What it needs an approval for where no rule applies: `network access`.
    because: Option<String>,
    reason: Option<String>,
    details: Option<String>,
}

impl Run {
    /// Decides about each call, none of which has started.
    pub(crate) async fn decide(&self, calls: &[Call]) -> Vec<Decision> {
        let ctx = Arc::new(self.context());
        let touch = move |call: &Call| tools::touched(&call.name, &call.arguments, &ctx);
        let looked = look(calls, &self.setup.path_threads, touch).await;
        let answers = self.answers().await;
        let policy = &self.setup.permissions;
        let decide = |(call, looked): (&Call, Looked)| match looked {
            Ok(Some(Touch { closed: Some(why), .. })) => Decision::Deny(why),
            Ok(touch) => {
                let fails = touch.as_ref().and_then(|touch| touch.fails.clone());
                match (judge(&policy.rules, &answers, claim(call, touch, policy)), fails) {
                    (Decision::NeedsApproval(_), Some(why)) => Decision::Deny(why),
                    (decision, _) => decision,
                }
            }
            Err(why) => Decision::Deny(why),
        };
        let decided: Vec<Decision> = calls.iter().zip(looked).map(decide).collect();
        let possible = calls.iter().zip(decided).map(|(call, decision)| async {
            match self.impossible(call, &decision).await {
                Some(why) => Decision::Deny(why),
                None => decision,
            }
        });
        futures_util::future::join_all(possible).await
    }

    /// Why a call that would wait for a person cannot work even if that person allows it. It ends
    /// with what the model can do instead.
    async fn impossible(&self, call: &Call, decision: &Decision) -> Option<String> {
        let Decision::NeedsApproval(draft) = decision else { return None };
        if let Err(why) = self.offered.check(&call.name, &call.arguments) {
            return Some(why);
        }
        let Grant { needs, lease } = &draft.grant;
        if call.name == "Bash"
            && let Some(why) = tools::needless(&(self.setup.scope)(), needs)
        {
            return Some(why);
        }
        if let Some(why) = self.setup.permissions.relations.unreachable(&call.name, &call.arguments)
        {
            return Some(why);
        }
        let could = self.setup.permissions.relations.could_extend(lease.clone()?).await;
        // Any other refusal says nothing of the call, such as that the host ends.
        let refusal =
            could.err().filter(|refusal| refusal.code == ErrorCode::InvalidRequest)?.message;
        Some(format!(
            "no person can allow it now: {refusal}; go on without it, and \
             say in your reply what is left to do there"
        ))
    }

    /// The rules of earlier decisions that bind this Pod: its own, then those of its ancestors for
    /// everything below them, the nearest first; of each the newest first.
    async fn answers(&self) -> Vec<(Pattern, Action)> {
        // Without them more calls wait for an approval, and none passes that should not.
        let stored = self.setup.store.policy().await.unwrap_or_default();
        in_force(&self.setup.pod, &self.setup.permissions.relations.lineage(), stored)
            .into_iter()
            .map(|rule| (rule.pattern, rule.action))
            .collect()
    }
}

/// The subject of a call, or why it could not be found out.
type Looked = Result<Option<Touch>, String>;

/// Looks at each call by itself, so that a panic at one call affects no other.
async fn look(
    calls: &[Call],
    threads: &PathThreads,
    touch: impl Fn(&Call) -> Option<Touch> + Clone + Send + 'static,
) -> Vec<Looked> {
    let looking = calls.iter().cloned().map(|call| {
        let touch = touch.clone();
        threads.run(move || touch(&call))
    });
    let looked = futures_util::future::join_all(looking).await;
    let not_started = |why| format!("not started: {why}");
    looked.into_iter().map(|touch| touch.map_err(not_started)).collect()
}

/// The stored rules that bind a Pod, in the order in which they apply.
pub fn in_force(pod: &PodName, lineage: &[PodName], stored: Vec<StoredRule>) -> Vec<StoredRule> {
    let near: Vec<String> = lineage.iter().rev().map(PodName::key).collect();
    let place = |rule: &StoredRule| {
        if rule.pod.key() == pod.key() {
            return Some(0);
        }
        let above = near.iter().position(|key| *key == rule.pod.key());
        above.filter(|_| rule.tree).map(|above| above + 1)
    };
    let mut binding: Vec<(usize, StoredRule)> =
        stored.into_iter().filter_map(|rule| Some((place(&rule)?, rule))).collect();
    binding.sort_by_key(|(place, _)| *place);
    binding.into_iter().map(|(_, rule)| rule).collect()
}

/// The call of an approval request, as policy sees it.
pub fn subject_of(approval: &ApprovalRequest) -> Subject {
    let word = |need: Need| approval.needs().any(|word| word == need.word()).then(|| need.word());
    let needs = Need::ALL.into_iter().filter_map(word).collect();
    Subject { tool: approval.tool.clone(), needs, texts: vec![approval.action.clone()] }
}

fn claim(call: &Call, touch: Option<Touch>, policy: &Policy) -> Claim {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let text = |key: &str| arguments.get(key)?.as_str().map(str::to_owned);
    let needs = match &touch {
        Some(touch) => touch.needs.clone(),
        None if call.name == "Bash" => needs(&arguments),
        None => Vec::new(),
    };
    let mut texts: Vec<String> = telling(&call.name).iter().filter_map(|key| text(key)).collect();
    texts.extend(touch.as_ref().map(|touch| touch.path.display().to_string()));
    let lease = touch.and_then(|touch| touch.lacks);
    let peer =
        call.name == "RestorePod" && text("name").is_some_and(|n| policy.relations.is_peer(&n));
    let because = because(call, &needs, lease.as_ref(), policy)
        .or_else(|| peer.then(|| "your approval: it is a peer, not a child".into()));
    let words = needs.iter().map(|need| need.word()).collect();
    let reason = text("reason").filter(|reason| !reason.trim().is_empty());
    let subject = Subject { tool: call.name.clone(), needs: words, texts };
    let details = details(&call.name, &arguments);
    Claim { subject, grant: Grant { needs, lease }, because, reason, details }
}

/// The arguments that name the subject of a call of this tool. Rules look at these arguments and at
/// no other.
pub(crate) fn telling(tool: &str) -> &'static [&'static str] {
    tools::find(tool).map_or(TELLING, |found| found.telling)
}

/// The needs that a command names; the tool refuses words that are no need.
fn needs(arguments: &Value) -> Vec<Need> {
    let named = arguments.get("needs").and_then(Value::as_array);
    let mut needs: Vec<Need> = named
        .into_iter()
        .flatten()
        .filter_map(|need| serde_json::from_value(need.clone()).ok())
        .collect();
    needs.sort();
    needs.dedup();
    needs
}

/// What a call needs that the program itself does not give without an approval.
fn because(call: &Call, needs: &[Need], lease: Option<&Rule>, policy: &Policy) -> Option<String> {
    if !needs.is_empty() {
        let wants = if call.name == "Bash" { wants } else { file_wants };
        return Some(needs.iter().map(|need| wants(*need)).collect::<Vec<_>>().join("; "));
    }
    if let Some(Rule { permission, .. }) = lease {
        let verb = if *permission == Permission::Write { "write" } else { "read" };
        return Some(format!("to {verb} outside its scope"));
    }
    let open = call.name == "Bash" && policy.walls == Walls::Missing;
    open.then(|| "your approval: the sandbox is off".into())
}

fn wants(need: Need) -> &'static str {
    match need {
        Need::Network => "network access",
        Need::Git => "to change hooks or the configuration of a git repository",
        Need::Outside => "files outside its scope and the sockets of other programs",
    }
}

fn file_wants(need: Need) -> &'static str {
    match need {
        Need::Outside => "to change a directory of programs on PATH",
        Need::Git | Need::Network => wants(need),
    }
}

/// The decision, from the rules and what the call wants. Pure.
fn judge(rules: &Rules, answers: &[(Pattern, Action)], claim: Claim) -> Decision {
    let tool = &claim.subject.tool;
    match rules.said(&claim.subject, answers) {
        Said::Allow => Decision::Allow(claim.grant),
        Said::Deny(rule) => denied(&format!("{rule} denies {tool} here")),
        Said::Ask(rule) => approval(format!("your approval: {rule} asks"), claim),
        Said::Nothing(default) => {
            // A call that concerns nothing but the Pod itself needs no policy.
            let default = default.filter(|_| !claim.subject.texts.is_empty());
            let stands = || format!("`[permissions] default` in {}", rules.user_file);
            match (default, claim.because.clone()) {
                (Some(Action::Deny), _) => denied(&format!("{} denies {tool}", stands())),
                (Some(Action::Ask) | None, Some(because)) => approval(because, claim),
                (Some(Action::Ask), None) => {
                    approval(format!("your approval: {} asks", stands()), claim)
                }
                (Some(Action::Allow), _) | (None, None) => Decision::Allow(claim.grant),
            }
        }
    }
}

fn denied(why: &str) -> Decision {
    Decision::Deny(format!("denied by policy: {why}"))
}

fn approval(because: String, claim: Claim) -> Decision {
    let Claim { subject, grant, because: own, reason, details } = claim;
    let because = match own {
        Some(own) if own != because => format!("{because}; {own}"),
        _ => because,
    };
    let rule = exactly(&subject);
    let action = subject.texts.into_iter().next_back().unwrap_or_default();
    let too_much = |bytes: usize, instead: &str| {
        denied(&format!(
            "this needs {because}, which a person has to allow, and {} KiB are too much to judge; {instead}",
            bytes.div_ceil(1024)
        ))
    };
    if action.len() > MAX_ACTION {
        return too_much(action.len(), "put it into a script file and run that");
    }
    let more = details.as_ref().map_or(0, String::len);
    if more > MAX_DETAILS {
        return too_much(more, "make the change in smaller calls");
    }
    let draft = ApprovalDraft { action, details, because, reason, rule, grant };
    Decision::NeedsApproval(Box::new(draft))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::policy::{FileRule, Permissions};
    use std::path::PathBuf;

    struct Alone;

    impl FamilyView for Alone {
        fn lineage(&self) -> Vec<PodName> {
            Vec::new()
        }
        fn is_peer(&self, name: &str) -> bool {
            name == "peer"
        }
        fn unreachable(&self, _: &str, _: &str) -> Option<String> {
            None
        }
        fn extend(&self, _: Rule) -> BoxFuture<'static, Result<(), Refusal>> {
            Box::pin(async { Ok(()) })
        }
        fn could_extend(&self, _: Rule) -> BoxFuture<'static, Result<(), Refusal>> {
            Box::pin(async { Ok(()) })
        }
    }

    fn policy(walls: Walls) -> Policy {
        Policy { rules: Arc::default(), relations: Arc::new(Alone), walls }
    }

    fn of(name: &str, arguments: &str, touch: Option<Touch>, walls: Walls) -> Decision {
        let call = Call { id: "c".into(), name: name.into(), arguments: arguments.into() };
        let policy = policy(walls);
        judge(&policy.rules, &[], claim(&call, touch, &policy))
    }

    fn outside(permission: Permission) -> Option<Touch> {
        let path = PathBuf::from("/else/where");
        let lacks = Some(Rule { target: path.clone(), permission, recursive: false });
        Some(Touch { path, lacks, ..Touch::default() })
    }

    fn guarded(path: &str, need: Need) -> Option<Touch> {
        Some(Touch { path: path.into(), needs: vec![need], ..Touch::default() })
    }

    /// `allow`, `deny`, or why a person is asked and the rule an answer would write.
    fn word(decision: &Decision) -> String {
        match decision {
            Decision::Allow(_) => "allow".into(),
            Decision::Deny(_) => "deny".into(),
            Decision::NeedsApproval(draft) => format!("{} [{}]", draft.because, draft.rule),
        }
    }

    #[test]
    fn without_rules_only_actions_outside_the_scope_need_an_approval() {
        let inside = || Some(Touch { path: "/w/x".into(), ..Touch::default() });
        let network = r#"{"command":"cargo fetch","needs":["network"],"reason":"crates"}"#;
        let table = [
            ("Read", r#"{"file_path":"/w/x"}"#, inside(), "allow"),
            (
                "Read",
                r#"{"file_path":"/else/where"}"#,
                outside(Permission::Read),
                "to read outside its scope [Read:/else/where]",
            ),
            (
                "Write",
                r#"{"file_path":"/else/../else/where"}"#,
                outside(Permission::Write),
                "to write outside its scope [Write:/else/where]",
            ),
            (
                "Write",
                r#"{"file_path":"/w/.git/config"}"#,
                guarded("/w/.git/config", Need::Git),
                "to change hooks or the configuration of a git repository [Write+git:/w/.git/config]",
            ),
            (
                "Edit",
                r#"{"file_path":"/w/bin/x"}"#,
                guarded("/w/bin/x", Need::Outside),
                "to change a directory of programs on PATH [Edit+outside:/w/bin/x]",
            ),
            ("Bash", r#"{"command":"cargo test"}"#, None, "allow"),
            ("Bash", network, None, "network access [Bash+network:cargo fetch]"),
            (
                "Bash",
                r#"{"command":"rm *","needs":["outside","git","outside"]}"#,
                None,
                "to change hooks or the configuration of a git repository; files outside its scope and the sockets of other programs [Bash+git+outside:rm \\*]",
            ),
            ("RestorePod", r#"{"name":"kid"}"#, None, "allow"),
            (
                "RestorePod",
                r#"{"name":"peer"}"#,
                None,
                "your approval: it is a peer, not a child [RestorePod:peer]",
            ),
            ("SendToPeerPod", r#"{"name":"peer","message":"x"}"#, None, "allow"),
            ("SpawnPod", r#"{"name":"kid","task":"x"}"#, None, "allow"),
            ("TaskList", "", None, "allow"),
            ("NoSuchTool", "not json", None, "allow"),
        ];
        for (tool, arguments, touch, expected) in table {
            assert_eq!(word(&of(tool, arguments, touch, Walls::Hold)), expected, "{tool}");
        }
    }

    #[tokio::test]
    async fn a_call_that_cannot_be_looked_at_is_answered_and_takes_no_other_with_it() {
        let call = |id: &str| Call { id: id.into(), name: "Read".into(), arguments: "{}".into() };
        let touch = |call: &Call| {
            assert!(call.id != "b", "the second call brings it to a fault");
            Some(Touch { path: call.id.clone().into(), ..Touch::default() })
        };
        let looked = look(&[call("a"), call("b"), call("c")], &PathThreads::default(), touch).await;
        let seen = |id: &str| Ok(Some(Touch { path: id.into(), ..Touch::default() }));
        assert_eq!((&looked[0], &looked[2]), (&seen("a"), &seen("c")));
        let why = looked[1].as_ref().unwrap_err();
        assert_eq!(why, "not started: a fault in the program kept it from being looked at");
    }

    #[test]
    fn without_walls_every_command_needs_an_approval() {
        let decision = of("Bash", r#"{"command":"ls"}"#, None, Walls::Missing);
        assert_eq!(word(&decision), "your approval: the sandbox is off [Bash:ls]");
    }

    #[test]
    fn an_argument_that_a_tool_does_not_have_hides_nothing_from_policy() {
        let decoys = [
            ("RestorePod", r#"{"command":"x","file_path":"/w","name":"peer"}"#, "RestorePod:peer"),
            ("Bash", r#"{"name":"x","command":"ls"}"#, "Bash:ls"),
        ];
        for (tool, arguments, rule) in decoys {
            let asked = word(&of(tool, arguments, None, Walls::Missing));
            assert!(asked.ends_with(&format!("[{rule}]")), "{asked}");
        }
        let deny = |tool: &str, pattern: &str| {
            let (tool, pattern) = (tool.into(), pattern.into());
            let rule = FileRule { tool, pattern, action: Action::Deny };
            let user = Permissions { default: None, rule: vec![rule] };
            Rules { user, ..Rules::default() }
        };
        let evading = [
            ("SendToPeerPod", "bob", r#"{"command":"x","path":"y","name":"bob","message":"z"}"#),
            ("Write", "/w/no", r#"{"command":"x","file_path":"/w/no","content":"z"}"#),
            ("Grep", "/w/no*", r#"{"command":"x","pattern":"a","path":"/w/no/b"}"#),
            ("Grep", "key*", r#"{"pattern":"key=","path":"/w"}"#),
            ("SpawnPod", "kid", r#"{"query":"x","url":"y","name":"kid","task":"z"}"#),
        ];
        for (tool, pattern, arguments) in evading {
            let call = Call { id: "c".into(), name: tool.into(), arguments: arguments.into() };
            let claim = claim(&call, None, &policy(Walls::Hold));
            let decided = judge(&deny(tool, pattern), &[], claim);
            assert!(matches!(decided, Decision::Deny(_)), "{tool} {arguments}: {decided:?}");
        }
    }

    #[test]
    fn an_approval_request_shows_the_whole_action_or_the_call_is_refused() {
        let bash = |command: &str| {
            let arguments = serde_json::json!({ "command": command, "needs": ["network"] });
            of("Bash", &arguments.to_string(), None, Walls::Hold)
        };
        let longest = "x".repeat(MAX_ACTION);
        let Decision::NeedsApproval(draft) = bash(&longest) else { panic!("it is asked about") };
        assert_eq!((draft.action.len(), draft.rule.pattern), (MAX_ACTION, longest.clone()));
        let Decision::Deny(why) = bash(&format!("{longest}; rm x")) else {
            panic!("it is refused")
        };
        assert!(
            why.ends_with("17 KiB are too much to judge; put it into a script file and run that")
        );
        let plain = serde_json::json!({ "command": format!("{longest}; rm x") }).to_string();
        assert_eq!(word(&of("Bash", &plain, None, Walls::Hold)), "allow");
        let write = |content: &str| {
            let arguments = serde_json::json!({ "file_path": "/w/h", "content": content });
            of("Write", &arguments.to_string(), guarded("/w/h", Need::Git), Walls::Hold)
        };
        let Decision::NeedsApproval(draft) = write("a\nb") else { panic!("it is asked about") };
        assert_eq!(draft.details.as_deref(), Some("+ a\n+ b"));
        let Decision::Deny(why) = write(&"x".repeat(MAX_DETAILS)) else { panic!("it is too much") };
        assert!(why.ends_with("make the change in smaller calls"), "{why}");
    }

    #[test]
    fn a_call_that_a_rule_allows_gets_its_needs() {
        let rule = FileRule { tool: "*".into(), pattern: "*".into(), action: Action::Allow };
        let user = Permissions { default: None, rule: vec![rule] };
        let rules = Rules { user, ..Rules::default() };
        let call = Call {
            id: "c".into(),
            name: "Bash".into(),
            arguments: r#"{"command":"x","needs":["network"]}"#.into(),
        };
        let claim = claim(&call, None, &policy(Walls::Hold));
        let grant = Grant { needs: vec![Need::Network], lease: None };
        assert_eq!(judge(&rules, &[], claim), Decision::Allow(grant));
    }

    #[test]
    fn a_default_stands_in_for_the_programs_own_but_not_for_what_is_only_the_pods() {
        let decide = |action: Action, tool: &str, arguments: &str| {
            let user = Permissions { default: Some(action), rule: vec![] };
            let rules = Rules { user, user_file: "config.toml".into(), ..Rules::default() };
            let call = Call { id: "c".into(), name: tool.into(), arguments: arguments.into() };
            judge(&rules, &[], claim(&call, None, &policy(Walls::Hold)))
        };
        let ls = r#"{"command":"ls"}"#;
        let asked = "your approval: `[permissions] default` in config.toml asks [Bash:ls]";
        assert_eq!(word(&decide(Action::Ask, "Bash", ls)), asked);
        let stands = denied("`[permissions] default` in config.toml denies Bash");
        assert_eq!(decide(Action::Deny, "Bash", ls), stands);
        let network = r#"{"command":"x","needs":["network"]}"#;
        assert_eq!(word(&decide(Action::Allow, "Bash", network)), "allow");
        assert_eq!(word(&decide(Action::Deny, "TaskList", "{}")), "allow");
    }

    #[test]
    fn a_pods_own_answers_come_before_those_for_the_subtrees_it_is_in() {
        let name = |name: &str| PodName::parse(name).unwrap();
        let rule = |id: u64, pod: &str, tree: bool| StoredRule {
            id,
            pod: name(pod),
            tree,
            pattern: Pattern { tool: "Bash".into(), pattern: "x".into() },
            action: Action::Allow,
        };
        let stored = vec![
            rule(6, "root", true),
            rule(5, "mid", true),
            rule(4, "mid", false),
            rule(3, "kid", false),
            rule(2, "other", true),
        ];
        let binding = in_force(&name("kid"), &[name("root"), name("mid")], stored);
        assert_eq!(binding.iter().map(|rule| rule.id).collect::<Vec<_>>(), [3, 5, 6]);
    }
}
