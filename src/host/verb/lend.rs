//! Lend: a person gives a part of one live Pod's scope to another one.

use crate::host::paths::resolved;
use crate::host::supervisor::Family;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, PodName, Refusal, WhileRunning};
use crate::scope::lease::NotLent;
use crate::scope::{Permission, Rule};

pub(crate) struct Lend {
    pub(crate) to: String,
    pub(crate) rule: Rule,
    pub(crate) running: WhileRunning,
}

impl Verb for Lend {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let from = cx.pod()?.name;
        let resolved = resolved(&cx, &self.rule.target).await?;
        let exists = resolved.exists;
        let rule = Rule { target: resolved.path, ..self.rule };
        let (to, running) = (self.to, self.running);
        let step = move |family: &mut Family| lend(family, &from, &to, rule.clone());
        cx.family_when_unused(running, step).await?;
        crate::crash_point!("lend-stored");
        Ok(Event::PathLent { exists })
    }
}

fn lend(family: &mut Family, from: &PodName, to: &str, rule: Rule) -> Result<(), Refusal> {
    let to = PodName::parse(to).map_err(|e| Refusal::invalid(e.to_string()))?;
    let to = family.pod(&to)?.name;
    if from.key() == to.key() {
        return Err(Refusal::invalid(format!("`{from}` has it already")));
    }
    if rule.permission == Permission::Read && family.table.held(&to.key()).covers(&rule) {
        let path = rule.target.display();
        return Err(Refusal::invalid(format!("`{to}` can read {path} already")));
    }
    match family.table.lend(&from.key(), &to.key(), rule.clone()) {
        Ok(()) => {
            family.must_be_unused();
            Ok(())
        }
        Err(NotLent::NotLive(_)) => {
            let stopped = [from, &to].into_iter().filter(|pod| !family.table.is_live(&pod.key()));
            let stopped: Vec<&str> = stopped.map(PodName::as_str).collect();
            let is = if stopped.len() == 1 { "is" } else { "are" };
            let text = format!(
                "`{}` {is} stopped, and both pods must be live; :restore {} first",
                stopped.join("` and `"),
                stopped.join(" and :restore ")
            );
            Err(Refusal::invalid(text))
        }
        Err(why) => Err(family.not_within(from, &rule, &why)),
    }
}
