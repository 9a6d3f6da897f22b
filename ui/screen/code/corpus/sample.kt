package org.example.words

import java.io.File

/** Counts words. */
class Counter(private val limit: Int = 1_000) {
    private val counts = mutableMapOf<String, Int>()

    fun add(text: String) {
        for (word in text.split(" ", "\t")) {
            if (word.isEmpty()) continue
            counts[word] = (counts[word] ?: 0) + 1 // again
        }
    }

    fun longest(): String? = counts.keys.maxByOrNull { it.length }
}

fun main(args: Array<String>) {
    val counter = Counter()
    val quote = '\''
    val text = """a "raw" text
        over lines"""
    when {
        args.isEmpty() -> counter.add(text)
        else -> counter.add(File(args[0]).readText())
    }
    println(counter.longest() ?: "nothing: 0x1F")
    if (quote == 'a') throw IllegalStateException("never")
}
