//! Pods that a person picked in the tree: marked ones, and ones pinned to a digit.

use yoi::protocol::PodName;

/// How many digits a Pod can be pinned to: 1 to 9.
const SLOTS: usize = 9;

/// The marked Pods, in the order in which they were marked.
#[derive(Clone, Debug, Default)]
pub struct Marks(Vec<PodName>);

impl Marks {
    pub fn all(&self) -> &[PodName] {
        &self.0
    }

    pub fn has(&self, name: &PodName) -> bool {
        self.0.contains(name)
    }

    /// Marks a Pod, or removes its mark.
    pub fn toggle(&mut self, name: PodName) {
        match self.0.iter().position(|marked| *marked == name) {
            Some(at) => drop(self.0.remove(at)),
            None => self.0.push(name),
        }
    }

    /// Removes the marks of these Pods.
    pub fn drop_if(&mut self, which: impl Fn(&PodName) -> bool) {
        self.0.retain(|name| !which(name));
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// The pinned Pods. A Pod has at most one digit.
#[derive(Clone, Debug, Default)]
pub struct Pins([Option<PodName>; SLOTS]);

impl Pins {
    /// The Pod in a slot from 1 to 9.
    pub fn at(&self, slot: u8) -> Option<&PodName> {
        self.0.get(usize::from(slot).checked_sub(1)?)?.as_ref()
    }

    /// The digit of a Pod.
    pub fn of(&self, name: &PodName) -> Option<u8> {
        (1..=9).find(|slot| self.at(*slot) == Some(name))
    }

    /// The digits in use with their Pods.
    pub fn all(&self) -> impl Iterator<Item = (u8, &PodName)> {
        (1..=9).filter_map(|slot| Some((slot, self.at(slot)?)))
    }

    /// Puts a Pod into a slot, in place of the Pod that was there. The Pod leaves its earlier slot.
    pub fn put(&mut self, slot: u8, name: PodName) {
        self.remove(&name);
        if let Some(at) = usize::from(slot).checked_sub(1).and_then(|at| self.0.get_mut(at)) {
            *at = Some(name);
        }
    }

    pub fn remove(&mut self, name: &PodName) {
        self.drop_if(|pinned| pinned == name);
    }

    /// Frees the digits of these Pods.
    pub fn drop_if(&mut self, which: impl Fn(&PodName) -> bool) {
        for slot in &mut self.0 {
            slot.take_if(|name| which(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> PodName {
        PodName::parse(text).expect("a name")
    }

    #[test]
    fn a_pod_has_one_digit_and_a_digit_one_pod() {
        let mut pins = Pins::default();
        pins.put(3, name("alice"));
        pins.put(5, name("bob"));
        pins.put(5, name("alice"));
        assert_eq!(pins.all().collect::<Vec<_>>(), [(5, &name("alice"))]);
        assert_eq!((pins.of(&name("alice")), pins.of(&name("bob"))), (Some(5), None));
        pins.remove(&name("alice"));
        assert_eq!(pins.all().count(), 0);
    }

    #[test]
    fn there_is_no_digit_beyond_nine_and_none_below_one() {
        let mut pins = Pins::default();
        for slot in [0, 10, 255] {
            pins.put(slot, name("alice"));
            assert_eq!(pins.at(slot), None);
        }
        assert_eq!(pins.of(&name("alice")), None);
    }
}
