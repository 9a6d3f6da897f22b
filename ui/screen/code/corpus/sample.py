#!/usr/bin/env python3
"""Counts words.

Usage: words.py FILE
"""
import sys
from pathlib import Path

LIMIT = 10_000
RATE = 1.5e-3


class Counter:
    '''Keeps a number for each word.'''

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.words = {}

    async def read(self, *, limit=0xFF):
        # An apostrophe isn't a string here.
        with open(self.path, encoding='utf-8') as file:
            for number, line in enumerate(file):
                for word in line.split():
                    self.words[word] = self.words.get(word, 0) + 1
                if number > limit and not line.strip():
                    break
        return sorted(self.words, key=lambda word: -len(word))


if __name__ == "__main__":
    text = """a long text # with no comment
    and 'quotes' inside"""
    print(r"\d+ is a pattern", text, None, True)
    sys.exit(0)
