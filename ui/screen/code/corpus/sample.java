package org.example.words;

import java.util.HashMap;
import java.util.Map;

/**
 * Counts words.
 */
public final class Words {
    private static final int LIMIT = 1_000;
    private final Map<String, Integer> counts = new HashMap<>();

    public Words(String text) {
        // One word at a time.
        for (String word : text.split("[ \"]+")) {
            counts.merge(word, 1, Integer::sum);
        }
    }

    public int count(String word) {
        char first = word.isEmpty() ? '\0' : word.charAt(0);
        if (first == '"' || counts.size() > LIMIT) {
            return -1;
        }
        return counts.getOrDefault(word, 0);
    }

    public static void main(String[] args) throws Exception {
        var words = new Words("it's a text");
        System.out.println(words.count("a") + 1.5f);
    }
}
