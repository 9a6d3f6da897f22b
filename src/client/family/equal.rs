//! Approval requests that one decision fits.

use crate::protocol::{ApprovalRequest, PodName};

/// The requests, equal ones together; each group stands where its first request does.
pub fn grouped(requests: &[ApprovalRequest]) -> Vec<Vec<&ApprovalRequest>> {
    let mut groups: Vec<Vec<&ApprovalRequest>> = Vec::new();
    for request in requests {
        match groups.iter_mut().find(|group| are_equal(group[0], request)) {
            Some(group) => group.push(request),
            None => groups.push(vec![request]),
        }
    }
    groups
}

/// Whether one decision fits both requests.
pub fn are_equal(one: &ApprovalRequest, other: &ApprovalRequest) -> bool {
    one.client == other.client
        && one.agent == other.agent
        && one.cwd == other.cwd
        && one.tool == other.tool
        && one.action == other.action
        && one.question == other.question
        && one.details == other.details
        && one.rule == other.rule
        && one.because == other.because
        && one.lease == other.lease
        && one.outside == other.outside
        && one.credentials == other.credentials
        && one.scripts == other.scripts
}

/// The Pods for whose tree one decision covers all these requests, the nearest first. For a single request, these are only
/// the Pods above its own.
pub fn roots(requests: &[&ApprovalRequest]) -> Vec<PodName> {
    let Some((first, others)) = requests.split_first() else { return Vec::new() };
    let is_of_tree = |request: &ApprovalRequest, root: &PodName| {
        request.is_of(root) || request.lineage.contains(root)
    };
    let own = others.iter().any(|other| other.pod != first.pod).then_some(&first.pod);
    let above = first.lineage.iter().rev();
    let all = own.into_iter().chain(above);
    all.filter(|root| others.iter().all(|other| is_of_tree(other, root))).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Pattern;

    fn name(text: &str) -> PodName {
        PodName::parse(text).expect("a name")
    }

    /// A request of a Pod with these above it.
    fn below(above: &[&str], pod: &str) -> ApprovalRequest {
        ApprovalRequest {
            lineage: above.iter().map(|above| name(above)).collect(),
            call_id: "c".into(),
            action: "cargo fetch".into(),
            because: "network access".into(),
            ..ApprovalRequest::new(
                pod.into(),
                name(pod),
                "Bash",
                Pattern { tool: "Bash".into(), pattern: "cargo fetch".into() },
            )
        }
    }

    #[test]
    fn the_pods_above_all_requests_are_the_roots_of_one_decision() {
        let (lead, one) = (below(&["top"], "lead"), below(&["top", "lead"], "one"));
        let two = below(&["top", "lead", "sub"], "two");
        assert_eq!(roots(&[&two]), ["sub", "lead", "top"].map(name));
        assert_eq!(roots(&[&one, &two]), ["lead", "top"].map(name));
        assert_eq!(roots(&[&lead, &two]), ["lead", "top"].map(name));
        assert_eq!(roots(&[&two, &lead]), ["lead", "top"].map(name));
        assert_eq!(roots(&[&one, &below(&[], "other")]), []);
        assert_eq!(roots(&[&one, &one]), ["lead", "top"].map(name));
        assert_eq!(roots(&[&below(&[], "alone")]), []);
    }
}
