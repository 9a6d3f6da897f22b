//! `:policy`: lists the rules of what Pods may do, or ends one.

use crate::verb::dialogue::or_end;
use crate::verb::{Action, Dialogue, End, Known, Next, Pick, Reply, Request, Verb, Why, of, verb};
use crate::wording::age::clock;
use crate::wording::scope;
use clap::{Args, Subcommand};
use yoi::protocol::{
    Action as Does, Event, Lent, Method, PolicyClient, PolicyConsent, PolicyRule, PolicyTrust,
};
use yoi::text::SafeText;

pub static VERB: Verb = of::<Policy>(Verb {
    more: &[
        "Lists every rule that decides what Pods may do, in the order in which they are tried; the first that \
         matches decides. Rules with a number were made by your approvals. :policy revoke <n> ends such a rule and \
         takes back the paths that it granted; so does :stop of its Pod.",
        "Below the rules it lists, each with a number: the providers to which you let text of your Pods be sent; the \
         files of workspaces that you trust, with the beginning of the hash of their content; and the MCP clients \
         that may use Pods.",
        ":policy revoke <n> ends these, too. The next message for a revoked provider asks you again, but a run in \
         progress finishes. The next run ignores what a revoked file asks for. The next call of a revoked client asks \
         you again.",
    ],
    ..verb("policy", "list the rules for what Pods may do, or revoke one")
});

#[derive(Args)]
struct Policy {
    #[command(subcommand)]
    change: Option<Change>,
    /// The numbers of the rows that are listed.
    #[arg(skip)]
    numbers: Vec<Option<u64>>,
}

/// The lists in the host's reply.
type Listed = (Vec<PolicyRule>, Vec<PolicyConsent>, Vec<PolicyTrust>, Vec<PolicyClient>);

/// A list without a part of it would show fewer rules than are in force.
const NOT_LISTED: &str = "the host did not say which rules are in force";

#[derive(Subcommand)]
enum Change {
    /// End a rule, a consent or a trust that you gave
    Revoke {
        /// Its number
        #[arg(value_name = "N", value_parser = number)]
        rule: u64,
    },
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number: :policy lists the numbers"))
}

impl Dialogue for Policy {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        match (last, &self.change) {
            (None, None) => Next::Call(lists(known)),
            (None, Some(Change::Revoke { rule })) => {
                Next::call(Request::host(Method::Revoke { rule: *rule }))
            }
            (Some(Reply::Picked(at)), _) => Next::End(self.picked(at)),
            (Some(reply), Some(Change::Revoke { rule })) => {
                or_end(reply.single().map(|event| Next::End(End::done(ended(*rule, &event)))))
            }
            (Some(reply), None) => or_end(both(reply).map(|listed| self.list(&listed, known))),
        }
    }
}

/// The requests for the rules that bind the selected Pod (those of its workspace included) and for the decisions
/// about all Pods.
fn lists(known: &Known<'_>) -> Vec<Request> {
    let selected = known.selected.filter(|pod| known.family.get(pod).is_some());
    let of_pod = selected.map(|pod| Request::to(pod.clone(), Method::ListPolicy));
    of_pod.into_iter().chain([Request::host(Method::ListPolicy)]).collect()
}

/// The rules that bind the Pod, then the decisions for other Pods, which have numbers too.
fn both(reply: Reply) -> Result<Listed, End> {
    let mut all = reply.all()?.into_iter().map(|event| match event {
        Event::Policy { rules, consents, trusts, clients, .. } => {
            Ok((rules, consents, trusts, clients))
        }
        _ => Err(End::refused(Why::Failed, NOT_LISTED)),
    });
    let mut listed = all.next().unwrap_or_else(|| Err(End::refused(Why::Failed, NOT_LISTED)))?;
    for others in all {
        let is_new = |rule: &PolicyRule| rule.id.is_some() && !listed.0.contains(rule);
        let others: Vec<PolicyRule> = others?.0.into_iter().filter(is_new).collect();
        listed.0.extend(others);
    }
    Ok(listed)
}

impl Policy {
    fn list(&mut self, listed: &Listed, known: &Known<'_>) -> Next {
        let (rules, consents, trusts, clients) = listed;
        if rules.is_empty() && consents.is_empty() && trusts.is_empty() && clients.is_empty() {
            return Next::End(End::shown("no rule is in force"));
        }
        let numbers = rules.iter().map(|rule| rule.id);
        let numbers = numbers.chain(consents.iter().map(|consent| Some(consent.id)));
        let numbers = numbers.chain(trusts.iter().map(|trust| Some(trust.id)));
        self.numbers = numbers.chain(clients.iter().map(|client| Some(client.id))).collect();
        let since = |at| clock(at, known.now, known.zone);
        let rules = rules.iter().map(|rule| row(rule.id, &text(rule), &rule.source));
        let consents = consents.iter().map(|consent| {
            let source = format!("your consent, since {}", since(consent.since));
            row(Some(consent.id), &sends(consent), &source)
        });
        let trusts = trusts.iter().map(|trust| {
            let source = format!("your trust, since {}", since(trust.since));
            row(Some(trust.id), &trusts_in(trust), &source)
        });
        let clients = clients.iter().map(|client| {
            let source = format!("your consent, since {}", since(client.since));
            row(Some(client.id), &admits(client), &source)
        });
        let rows = rules.chain(consents).chain(trusts).chain(clients);
        let rows = rows.map(|text| (text, String::new())).collect();
        Next::Pick(Pick { title: "policy: the first that fits counts".into(), about: None, rows })
    }

    /// Whether the list can end it: a rule from an approval, or a consent.
    fn picked(&self, at: usize) -> End {
        match self.numbers.get(at).copied().flatten() {
            Some(id) => End::act(Action::Prefill(format!("policy revoke {id}"))),
            None => End::shown("a rule without a number is in a configuration file"),
        }
    }
}

/// The sentence about a rule or a consent that ended.
fn ended(number: u64, reply: &Event) -> String {
    let Event::Policy { rules, consents, trusts, clients, closed, kept } = reply else {
        return format!("rule {number} no longer applies");
    };
    if let Some(client) = clients.first() {
        let what = admits(client);
        return format!("consent {number} is taken back: {what}; its next call asks again");
    }
    if let Some(trust) = trusts.first() {
        let what = trusts_in(trust);
        return format!("trust {number} is taken back: {what}; the next run goes without it");
    }
    if let Some(consent) = consents.first() {
        let what = sends(consent);
        return format!(
            "consent {number} is taken back: {what}; the next message there asks again"
        );
    }
    let what = rules.first().map(|rule| format!(": {}", text(rule))).unwrap_or_default();
    let mut said = format!("rule {number} no longer applies{what}");
    let paths = |lent: &[Lent]| {
        let each = lent.iter().map(|l| format!("{} for {}", scope::rule(&l.rule), l.to));
        each.collect::<Vec<_>>().join(", ")
    };
    if !closed.is_empty() {
        said.push_str(&format!("; revoked: {}", paths(closed)));
    }
    if !kept.is_empty() {
        let why = "until the pods to which they are lent stop";
        said.push_str(&format!("; still granted {why}: {}", paths(kept)));
    }
    said
}

/// A row of the list.
fn row(number: Option<u64>, text: &str, source: &str) -> String {
    let number = number.map(|id| format!("{id}  ")).unwrap_or_default();
    format!("{number}{text}  ({source})")
}

/// The text of a rule.
fn text(rule: &PolicyRule) -> String {
    let does = match rule.action {
        Does::Allow => "allow",
        Does::Ask => "ask",
        Does::Deny => "deny",
    };
    let whom = match (&rule.pod, rule.tree) {
        (None, _) => String::new(),
        (Some(pod), false) => format!(" for {pod}"),
        (Some(pod), true) => format!(" for {pod} and its children"),
    };
    format!("{does} {}{whom}", crate::wording::rule::pattern(&rule.pattern))
}

/// The text of a consent.
fn sends(consent: &PolicyConsent) -> String {
    let PolicyConsent { provider, base_url, key, .. } = consent;
    let text = format!("send text to {provider} at {base_url} {key}");
    SafeText::spelled(text).into_string()
}

/// The consent to an MCP client, in words.
fn admits(client: &PolicyClient) -> String {
    let (folder, name) = (client.folder.display(), SafeText::quoted(&client.name));
    let text = format!("let the MCP client {name} use the Pods in {folder}, and start some there");
    SafeText::spelled(text).into_string()
}

/// The text of a trust.
fn trusts_in(trust: &PolicyTrust) -> String {
    let workspace = trust.workspace.display();
    let hash = trust.sha256.get(..12).unwrap_or(&trust.sha256);
    SafeText::spelled(format!(
        "trust {workspace} (.yoi/config.toml, .mcp.json) with SHA-256 {hash}"
    ))
    .into_string()
}
