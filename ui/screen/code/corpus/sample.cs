using System;
using System.Collections.Generic;

namespace Example.Words
{
    /// Counts words.
    public sealed class Counter
    {
        private readonly Dictionary<string, int> counts = new Dictionary<string, int>();

        public int this[string word] => counts.TryGetValue(word, out var n) ? n : 0;

        public void Add(string text)
        {
            /* One word
               at a time. */
            foreach (var word in text.Split(' '))
            {
                if (word == "" || word[0] == '\'')
                {
                    continue;
                }
                counts[word] = this[word] + 1;
            }
        }

        public static void Main(string[] args)
        {
            var counter = new Counter();
            counter.Add(@"C:\a ""path"" here");
            Console.WriteLine($"a: {counter["a"]}", 1.5, true, null);
        }
    }
}
