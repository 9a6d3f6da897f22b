-- Words and how often they came.
CREATE TABLE words (
    id INTEGER PRIMARY KEY,
    word VARCHAR(64) NOT NULL,
    count INTEGER DEFAULT 0
);

/* Two rows
   to begin with. */
INSERT INTO words (word, count) VALUES ('it''s', 1), ('-- none', 25);

SELECT w.word, w.count AS n
FROM words AS w
WHERE w.count > 1.5 AND w.word LIKE 'a%'
GROUP BY w.word
ORDER BY n DESC
LIMIT 10;

update words set count = count + 1 where word = 'a';
