//! `:tour`: plays five scenes. The Pods of an earlier tour are deleted first, because the new ones have the same names.

use crate::verb::several::confirm;
use crate::verb::targets::list;
use crate::verb::{
    Action, Dialogue, End, Known, Next, Reply, Request, SCREEN, Safety, Verb, Why, of, verb,
};
use clap::Args;
use yoi::llm::rehearsal::plays_tour;
use yoi::protocol::{Method, PodInfo, PodName, State};

pub static VERB: Verb = of::<Tour>(Verb {
    ways: SCREEN,
    safety: Safety::Confirms,
    ..verb("tour", "play five scenes with a script in place of a model, in a temporary directory")
});

/// The names of the Pods that the script starts.
const NAMES: [&str; 3] = ["writer", "tester", "fetcher"];

#[derive(Args)]
struct Tour {
    /// The Pods of the earlier tour.
    #[arg(skip)]
    earlier: Vec<PodName>,
    #[arg(skip)]
    are_stopped: bool,
}

impl Dialogue for Tour {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        match last {
            None => self.begin(known),
            Some(Reply::Confirmed) => self.stop(known),
            Some(Reply::Results(_)) if !self.are_stopped => self.delete(),
            Some(Reply::Results(results)) => match results.into_iter().find_map(Result::err) {
                None => Next::End(End::act(Action::Tour)),
                Some(refusal) => Next::End(End::refused(Why::Failed, refusal.message)),
            },
            Some(Reply::Picked(_) | Reply::Key(_)) => Next::End(End::default()),
        }
    }
}

impl Tour {
    fn begin(&mut self, known: &Known<'_>) -> Next {
        let of_tour = |info: &&PodInfo| plays_tour(info);
        let own = known.family.all().iter().filter(|info| !of_tour(info));
        let mut own = own.map(|info| info.name.as_str());
        if let Some(name) = own.find(|name| NAMES.contains(name)) {
            let text = format!("the tour needs the name {name}, which a Pod of yours has");
            return Next::End(End::refused(Why::Failed, text));
        }
        let earlier = known.family.all().iter().filter(of_tour);
        self.earlier = earlier.map(|info| info.name.clone()).collect();
        if self.earlier.is_empty() {
            return Next::End(End::act(Action::Tour));
        }
        self.earlier.sort_by_key(|pod| known.family.depth(pod));
        let pods = list(&self.earlier);
        let question = format!("delete the earlier tour ({pods}) and play it again?");
        confirm(&self.earlier, question, "play it again")
    }

    /// A parent that is stopped first is not woken when its children stop.
    fn stop(&mut self, known: &Known<'_>) -> Next {
        let is_live =
            |pod: &&PodName| known.family.get(pod).is_some_and(|info| info.state != State::Stopped);
        let method = Method::StopPods { tree: false, unless_busy: false, silent: false };
        let stop = |pod: &PodName| Request::to(pod.clone(), method.clone());
        let stops: Vec<Request> = self.earlier.iter().filter(is_live).map(stop).collect();
        if stops.is_empty() { self.delete() } else { Next::Call(stops) }
    }

    fn delete(&mut self) -> Next {
        self.are_stopped = true;
        let delete = |pod: &PodName| Request::to(pod.clone(), Method::Remove);
        Next::Call(self.earlier.iter().rev().map(delete).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::app::tests::pod;
    use crate::verb::Way;
    use crate::verb::tests::known_in;
    use std::collections::BTreeMap;
    use yoi::client::family::Family;
    use yoi::llm::rehearsal::TOUR_MODEL;
    use yoi::protocol::Event;

    fn tour() -> Tour {
        Tour { earlier: Vec::new(), are_stopped: false }
    }

    fn family(pods: &[(&str, &str, State)]) -> Family {
        let mut family = Family::default();
        for (name, model, state) in pods {
            family.set(PodInfo { model: (*model).into(), ..pod(name, *state) });
        }
        family
    }

    #[test]
    fn a_second_tour_deletes_the_pods_of_the_first_one_after_a_confirmation() {
        let family = family(&[
            ("tour", TOUR_MODEL, State::Idle),
            ("writer", TOUR_MODEL, State::Stopped),
            ("mine", "a/b", State::Idle),
        ]);
        let env = BTreeMap::new();
        let known = known_in(&family, &env, Way::Line);
        let mut tour = tour();
        let Next::Confirm(confirm) = tour.next(&known, None) else { panic!("no confirmation") };
        assert!(confirm.question.contains("(tour, writer)"), "{}", confirm.question);
        let named = |next| match next {
            Next::Call(requests) => requests
                .into_iter()
                .map(|request| (request.pod.expect("a Pod").to_string(), request.method.name()))
                .collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        let stops = named(tour.next(&known, Some(Reply::Confirmed)));
        assert_eq!(stops, [("tour".to_owned(), "stop")]);
        let done = || Reply::Results(vec![Ok(Event::done())]);
        let mut deletes = named(tour.next(&known, Some(done())));
        deletes.sort();
        assert_eq!(deletes, ["tour", "writer"].map(|pod| (pod.to_owned(), "remove")));
        let Next::End(end) = tour.next(&known, Some(done())) else { panic!("no end") };
        assert_eq!(end.action, Some(Action::Tour));
    }

    #[test]
    fn a_pod_of_the_person_with_a_name_of_the_tour_stays() {
        let family = family(&[("tester", "a/b", State::Stopped)]);
        let env = BTreeMap::new();
        let Next::End(end) = tour().next(&known_in(&family, &env, Way::Line), None) else {
            panic!("no end")
        };
        assert!(matches!(end.said, crate::verb::Said::Refused(..)) && end.action.is_none());
    }
}
