import Foundation

/// Counts words.
struct Counter {
    private var counts: [String: Int] = [:]
    let limit = 1_000

    mutating func add(_ text: String) {
        /* a comment /* inside */ of it */
        for word in text.split(separator: " ") {
            counts[String(word), default: 0] += 1
        }
    }

    func longest() -> String? {
        guard let word = counts.keys.max(by: { $0.count < $1.count }) else {
            return nil
        }
        return word
    }
}

var counter = Counter()
counter.add("it's a \"quoted\" text")
let text = """
    over lines // no comment
    """
if let word = counter.longest(), word.count > 2 {
    print("longest:", word, text, 1.5, true)
}
