//! Lend: a person gives a part of one live Pod's scope to another one.

use crate::host::paths::canonical;
use crate::host::supervisor::{Family, done};
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, PodName, Refusal};
use crate::scope::lease::NotLent;
use crate::scope::{Permission, Rule};

pub(crate) struct Lend {
    pub(crate) to: String,
    pub(crate) rule: Rule,
}

impl Verb for Lend {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let from = cx.pod()?.name;
        let target = canonical(&cx, &self.rule.target).await?;
        let rule = Rule { target, ..self.rule };
        cx.family(move |family| lend(family, &from, &self.to, rule)).await?;
        crate::crash_point!("lend-stored");
        Ok(done())
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
            let text = format!("both `{from}` and `{to}` must be live; :restore comes first");
            Err(Refusal::invalid(text))
        }
        Err(why) => Err(family.not_within(from, &rule, &why)),
    }
}
