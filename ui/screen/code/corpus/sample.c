/* Counts words: a word
 * is what stands between blanks. */
#include <stdio.h>
#include "words.h"

#define LIMIT 0x400

struct word {
    char *text;
    unsigned long count;
};

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\'';
}

int main(int argc, char **argv)
{
    size_t words = 0;
    int inside = 0;
    if (argc > 1 && argv[1] != NULL) {
        fprintf(stderr, "usage: %s < FILE // no comment\n", argv[0]);
        return 2;
    }
    for (int c; (c = getchar()) != EOF;) {
        if (is_blank((char)c)) {
            inside = 0;
        } else if (!inside) {
            inside = 1;
            words++; // a new one
        }
    }
    printf("%zu words, %.2f\n", words, 1.5e3);
    return 0;
}
