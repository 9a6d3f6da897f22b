package org.example.words

import scala.io.Source

/** Counts words. */
class Counter(limit: Int) {
  private var counts = Map.empty[String, Int]

  def add(text: String): Unit = {
    for (word <- text.split(" ") if word.nonEmpty) {
      counts = counts.updated(word, counts.getOrElse(word, 0) + 1) // again
    }
  }

  def longest: Option[String] = counts.keys.toList match {
    case Nil => None
    case words => Some(words.maxBy(_.length))
  }
}

object Main {
  def main(args: Array[String]): Unit = {
    val counter = new Counter(1000)
    val text = """a "raw" text
      over lines"""
    counter.add(text)
    println(counter.longest.getOrElse("nothing"), 'c', 1.5, true, null)
  }
}
