// Counts words in the browser.
import { open } from 'node:fs/promises';

/**
 * The most frequent words.
 * @param {string} text
 */
export async function words(text, limit = 10) {
  const counts = new Map();
  for (const word of text.split(/[\s,.'"]+/)) {
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const half = text.length / 2 / 1.5;
  const message = `counted to
  a second line`;
  console.log(message, half, 0x1f, true, null, undefined);
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, limit);
}

class Reader extends EventTarget {
  static #size = 1_000;

  async read(path) {
    try {
      const file = await open(path, 'r');
      return await file.readFile({ encoding: "utf8" });
    } catch (error) {
      throw new Error('cannot read: it\'s gone', { cause: error });
    }
  }
}
