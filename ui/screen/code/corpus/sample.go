// Package words counts words.
package words

import (
	"bufio"
	"fmt"
	"os"
)

const limit = 0x10

/* Count holds a word
   and how often it came. */
type Count struct {
	Word string `json:"word"`
	N    int    `json:"n"`
}

func Read(path string) (map[string]int, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	defer file.Close()
	counts := make(map[string]int)
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		for _, r := range scanner.Text() {
			if r == '\'' || r == ' ' {
				continue
			}
			counts[string(r)]++
		}
	}
	go func() { fmt.Println("done", 1.5, true) }()
	return counts, scanner.Err()
}
