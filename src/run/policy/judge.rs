//! The decision about a claim, from the rules. Reads no disk.

use crate::config::policy::{Rules, Said, Subject, changed_scripts, exactly};
use crate::protocol::{Action, Pattern, ScriptHash};
use crate::run::policy::claim::Claim;
use crate::run::policy::{ApprovalDraft, Decision, Grant, MAX_DETAILS};
use crate::tools;

/// Bytes of an action in an approval request: it is shown whole, or the call is refused.
pub(super) const MAX_ACTION: usize = 16 * 1024;
/// What the model can do about a call that is too large to be judged.
const SMALLER: &str = "make the change in smaller calls";

/// The decision, from the rules and the needs of the call.
pub(super) fn judge(rules: &Rules, answers: &[(Pattern, Action)], claim: Claim) -> Decision {
    let tool = &claim.subject.tool;
    let approval = |because, claim| approval(because, answers, claim);
    match rules.said(&claim.subject, answers) {
        // The rule was written for a call that runs alone.
        Said::Allow if claim.beside.is_some() => approval("your approval".into(), claim),
        Said::Allow => Decision::Allow(Grant { by_rule: true, ..claim.grant.of_any_content() }),
        Said::Deny(rule) => denied(&format!("{rule} denies {tool} here")),
        Said::Ask(rule) => approval(format!("your approval: {rule} asks"), claim),
        Said::Nothing(default) => {
            let default = default.filter(|_| !claim.subject.is_own_business());
            let stands = || format!("`[permissions] default` in {}", rules.user_file);
            match (default, claim.because.clone()) {
                (Some(Action::Deny), _) => denied(&format!("{} denies {tool}", stands())),
                (Some(Action::Ask) | None, Some(because)) => approval(because, claim),
                (Some(Action::Ask), None) => {
                    approval(format!("your approval: {} asks", stands()), claim)
                }
                (Some(Action::Allow), _) if claim.beside.is_some() => {
                    approval("your approval".into(), claim)
                }
                // Only a rule that names the credential gives it.
                (Some(Action::Allow), Some(because)) if !claim.grant.credentials.is_empty() => {
                    approval(because, claim)
                }
                (Some(Action::Allow), _) | (None, None) => {
                    Decision::Allow(claim.grant.of_any_content())
                }
            }
        }
    }
}

pub(super) fn denied(why: &str) -> Decision {
    Decision::Deny(format!("denied by policy: {why}"))
}

/// Denies a call whose details are more than a person can judge.
pub(super) fn within_limit(decision: Decision) -> Decision {
    let Decision::NeedsApproval(draft) = &decision else { return decision };
    match draft.details.as_ref().map_or(0, String::len) {
        more if more > MAX_DETAILS => too_much(&draft.because, more, SMALLER),
        _ => decision,
    }
}

fn too_much(because: &str, bytes: usize, instead: &str) -> Decision {
    denied(&format!(
        "this needs {because}, which a person has to allow, and {} KiB are too much to judge; {instead}",
        bytes.div_ceil(1024)
    ))
}

/// The paths of these scripts; `None` if there are none.
fn paths<'a>(scripts: impl Iterator<Item = &'a ScriptHash>) -> Option<String> {
    let paths: Vec<String> = scripts.map(|script| script.path.display().to_string()).collect();
    (!paths.is_empty()).then(|| paths.join(", "))
}

fn approval(because: String, answers: &[(Pattern, Action)], claim: Claim) -> Decision {
    let Claim { subject, grant, because: own, reason, details, beside, answered_once } = claim;
    let mut because = match own {
        Some(own) if own != because => format!("{because}; {own}"),
        _ => because,
    };
    if let Some(changed) = paths(changed_scripts(answers, &subject).into_iter()) {
        because.push_str(&format!("; you allowed this before, and since then {changed} changed"));
    }
    if let Some(unread) = paths(subject.scripts.iter().filter(|script| script.is_unread())) {
        because.push_str(&format!("; the content of {unread} is not compared, so any may run"));
    }
    if let Some(unheld) = paths(subject.scripts.iter().filter(|script| script.is_unheld())) {
        because.push_str(&format!("; another Pod or a command in the background may exchange {unheld} while the command runs"));
    }
    because.extend(beside.map(|beside| format!("; {beside}")));
    let rule = exactly(&subject);
    let count = subject.scripts.iter().filter(|script| !script.is_unheld()).count();
    if count > tools::MAX_SCRIPTS {
        return denied(&format!(
            "this needs {because}, which a person has to allow, and more than {} scripts are too many to judge; run \
             them in several commands",
            tools::MAX_SCRIPTS
        ));
    }
    let (action, most, instead) = match &subject.arguments {
        Some(all) => (all.to_string(), MAX_DETAILS, SMALLER),
        None => {
            let action = subject.texts.last().cloned().unwrap_or_default();
            (action, MAX_ACTION, "put it into a script file and run that")
        }
    };
    if action.len() > most {
        return too_much(&because, action.len(), instead);
    }
    let Subject { arguments, once_only, .. } = subject;
    let draft = ApprovalDraft {
        action,
        question: None,
        arguments,
        details,
        because,
        reason,
        rule,
        once_only,
        answered_once,
        grant,
    };
    Decision::NeedsApproval(Box::new(draft))
}
