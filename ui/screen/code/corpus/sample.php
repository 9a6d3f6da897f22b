<?php
// Counts words.
namespace Example;

/**
 * A counter.
 */
final class Counter
{
    private array $counts = [];

    public function add(string $text): void
    {
        # One word at a time.
        foreach (explode(' ', $text) as $word) {
            if ($word === '' || $word === "it's") {
                continue;
            }
            $this->counts[$word] = ($this->counts[$word] ?? 0) + 1;
        }
    }

    public function longest(): ?string
    {
        return array_key_last($this->counts) ?? null;
    }
}

$counter = new Counter();
$counter->add("one two $argv[0]");
echo $counter->longest(), 1.5, true, PHP_EOL;
