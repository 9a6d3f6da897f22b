// Counts words.
#include <iostream>
#include <map>
#include <string>

namespace words {

template <typename T>
class Counter {
public:
    explicit Counter(T limit) : limit_(limit) {}

    void add(const std::string &word)
    {
        if (word.empty() || word[0] == '"') {
            return;
        }
        ++counts_[word];
    }

    auto size() const noexcept { return counts_.size(); }

private:
    T limit_;
    std::map<std::string, int> counts_;
};

} // namespace words

/* The program. */
int main()
{
    auto counter = words::Counter<double>(1.5e2);
    for (std::string word; std::cin >> word;) {
        counter.add(word);
    }
    std::cout << "words: " << counter.size() << '\n';
    const char *text = R"(raw "text" \n)";
    return text == nullptr ? 1 : 0;
}
