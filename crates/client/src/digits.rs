//! Numbers as errors show them.

/// Groups the digits of a number: `1,204`.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        let shown = [0, 999, 1_000, 1_204, 2_097_152].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "1,204", "2,097,152"]);
    }
}
