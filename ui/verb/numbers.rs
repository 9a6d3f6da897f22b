//! The numbers under which approval requests are shown: each belongs to one request for ever, so a
//! line that is typed while requests come and go decides the one it was typed for.

/// A number for each request that this program has seen.
#[derive(Debug, Default)]
pub struct Numbers {
    /// The ids of all requests; a number is an index in it, counted from `before + 1`.
    ids: Vec<String>,
    /// At a terminal a random number, 0 elsewhere.
    before: usize,
    /// Requests that were shown since the person decided one or asked for the list.
    shown: Vec<String>,
}

/// Why a typed line names no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRequest {
    #[error("there is no request {0}; :inbox lists those that wait")]
    Unknown(usize),
    #[error("request {0} does not wait any more: it was withdrawn, or decided elsewhere")]
    Over(usize),
    #[error("no request was shown that waits; :inbox lists them")]
    NoneShown,
    #[error("say the number of the request, as in `:{0} {1}`")]
    NoNumber(&'static str, usize),
    #[error("{0} requests were shown; say the number of the one you mean, as in `:{1} {2}`")]
    Several(usize, &'static str, usize),
}

impl Numbers {
    /// Numbers for a person at a terminal. Text of a model can look like a request there, so a line that
    /// answers such a text must not decide a real request that comes meanwhile: the model cannot know
    /// the number that the next one gets, and a decision always names it.
    pub fn at_a_terminal() -> Self {
        let mut random = [0; 2];
        // Without randomness the numbers begin at 101: a number is still needed.
        let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
        Self { before: 100 + usize::from(u16::from_ne_bytes(random)) % 800, ..Self::default() }
    }

    /// The number of a request; a request seen for the first time gets a new one.
    pub fn of(&mut self, id: &str) -> usize {
        match self.ids.iter().position(|known| known == id) {
            Some(at) => self.before + at + 1,
            None => {
                self.ids.push(id.to_owned());
                self.before + self.ids.len()
            }
        }
    }

    /// Notes that a request is shown to the person, and returns its number.
    pub fn show(&mut self, id: &str) -> usize {
        if !self.shown.iter().any(|shown| shown == id) {
            self.shown.push(id.to_owned());
        }
        self.of(id)
    }

    /// Whether the person was shown a request since the last decision or list.
    pub fn was_shown(&self, id: &str) -> bool {
        self.shown.iter().any(|shown| shown == id)
    }

    /// Notes that the person asked for the list: requests shown before it do not count.
    pub fn list_begins(&mut self) {
        self.shown.clear();
    }

    /// Notes that the person decided this request.
    pub fn decided(&mut self, id: &str) {
        self.shown.retain(|shown| shown != id);
    }

    /// The request that a typed number means, or its absence for this verb.
    pub fn find(
        &self,
        number: Option<usize>,
        verb: &'static str,
        is_open: impl Fn(&str) -> bool,
    ) -> Result<&str, NoRequest> {
        let number = match number {
            Some(number) => number,
            None => self.only_shown(verb)?,
        };
        let id = number.checked_sub(self.before + 1).and_then(|at| self.ids.get(at));
        let id = id.ok_or(NoRequest::Unknown(number))?;
        if is_open(id) { Ok(id) } else { Err(NoRequest::Over(number)) }
    }

    /// The number of the one request that was shown. One that was withdrawn since counts, too: the
    /// person may not have noticed.
    fn only_shown(&self, verb: &'static str) -> Result<usize, NoRequest> {
        let place = |id: &String| self.ids.iter().position(|known| known == id).unwrap_or(0);
        let number = |id: &String| self.before + place(id) + 1;
        match self.shown.as_slice() {
            [] => Err(NoRequest::NoneShown),
            [.., last] if self.before > 0 => Err(NoRequest::NoNumber(verb, number(last))),
            [one] => Ok(number(one)),
            [.., last] => Err(NoRequest::Several(self.shown.len(), verb, number(last))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_belongs_to_its_request_for_ever() {
        let mut numbers = Numbers::default();
        assert_eq!((numbers.show("a"), numbers.show("b"), numbers.of("a")), (1, 2, 1));
        let without_a = |id: &str| id != "a";
        assert_eq!(numbers.find(Some(1), "allow", without_a), Err(NoRequest::Over(1)));
        assert_eq!(numbers.find(Some(2), "allow", without_a), Ok("b"));
        assert_eq!(numbers.of("c"), 3, "the number of a withdrawn request is not given again");
        assert_eq!(numbers.find(Some(9), "allow", |_| true), Err(NoRequest::Unknown(9)));
        assert_eq!(numbers.find(Some(0), "allow", |_| true), Err(NoRequest::Unknown(0)));
    }

    #[test]
    fn at_a_terminal_a_decision_names_a_number_that_no_model_knows() {
        let mut numbers = Numbers::at_a_terminal();
        let first = numbers.show("a");
        assert!((101..=900).contains(&first), "{first}");
        assert_eq!(numbers.find(None, "allow", |_| true), Err(NoRequest::NoNumber("allow", first)));
        assert_eq!(numbers.find(Some(1), "allow", |_| true), Err(NoRequest::Unknown(1)));
        assert_eq!(numbers.find(Some(first), "allow", |_| true), Ok("a"));
        assert_eq!(numbers.show("b"), first + 1);
    }

    #[test]
    fn without_a_number_a_request_is_meant_only_when_it_alone_was_shown() {
        let mut numbers = Numbers::default();
        numbers.of("unseen");
        assert_eq!(numbers.find(None, "allow", |_| true), Err(NoRequest::NoneShown));
        numbers.show("a");
        assert_eq!(numbers.find(None, "allow", |_| true), Ok("a"));
        numbers.show("b");
        let several = Err(NoRequest::Several(2, "deny", 3));
        assert_eq!(numbers.find(None, "deny", |id| id == "b"), several, "a was withdrawn unseen");
        numbers.decided("b");
        assert_eq!(numbers.find(None, "deny", |id| id != "a"), Err(NoRequest::Over(2)));
        numbers.list_begins();
        numbers.show("c");
        assert_eq!(numbers.find(None, "deny", |_| true), Ok("c"));
    }
}
