//! What things cost.

/// The price of several things of one kind, in cents.
pub fn total(cents: u32, count: u32) -> u32 {
    cents * count
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn nothing_costs_nothing() {
        assert_eq!(total(250, 0), 0);
    }

    #[test]
    fn two_cost_twice_as_much() {
        assert_eq!(total(250, 2), 500);
    }

    #[test]
    fn a_price_never_wraps() {
        assert_eq!(total(u32::MAX, 2), u32::MAX);
    }
}
