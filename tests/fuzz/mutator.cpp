// Mutations that respect the syntax of YAML and JSON, in addition to libFuzzer's byte mutations: most of a
// parser is only reached by valid syntax.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using Random = std::minstd_rand;

size_t below(Random& random, size_t n) {
  return n == 0 ? 0 : random() % n;
}

struct Span {
  size_t at, size;
};

template <typename IsPart>
std::vector<Span> spans(const std::string& text, IsPart is_part) {
  std::vector<Span> found;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_part(text[end])) ++end;
    if (end > at) found.push_back({at, end - at});
    at = std::max(end, at + 1);
  }
  return found;
}

std::vector<Span> words(const std::string& text) {
  return spans(text,
               [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_-./", c); });
}
std::vector<Span> numbers(const std::string& text) {
  std::vector<Span> found = words(text);
  std::erase_if(found, [&](const Span& span) {
    const char first = text[span.at];
    return !std::isdigit(static_cast<unsigned char>(first)) && first != '-' && first != '.';
  });
  return found;
}
std::vector<Span> lines(const std::string& text) {
  return spans(text, [](char c) { return c != '\n'; });
}

const char* const kNumbers[] = {"0",
                                "-1",
                                "1",
                                "2",
                                "3",
                                "7",
                                "8",
                                "64",
                                "255",
                                "4096",
                                "65536",
                                "999999",
                                "1000000000",
                                "2147483647",
                                "2147483648",
                                "4000000000",
                                "9223372036854775807",
                                "9223372036854775808",
                                "-9223372036854775808",
                                "1e9",
                                "1e18",
                                "1e300",
                                "1e308",
                                "1e999",
                                "1e-300",
                                "1e-320",
                                "0.1",
                                "-0.0",
                                ".nan",
                                "NaN",
                                ".inf",
                                "-.inf",
                                "0x10",
                                "007",
                                "1_000",
                                "1.5",
                                "",
                                "null",
                                "~",
                                "true"};
const char* const kPieces[] = {"&a ",
                               "*a",
                               "*a, ",
                               "<<: *a\n",
                               "!!str ",
                               "!x ",
                               "? ",
                               "- ",
                               "- - - ",
                               ": ",
                               "{",
                               "}",
                               "[",
                               "]",
                               "\"",
                               "'",
                               "|\n",
                               ">\n",
                               "\n---\n",
                               "\n...\n",
                               "# ",
                               "\t",
                               "\r\n",
                               "\xef\xbb\xbf",
                               "\xff",
                               "\xc0\xaf",
                               "\xed\xa0\x80",
                               "\xf4\x90\x80\x80",
                               "\\u0000",
                               "\\ud800",
                               "\\",
                               "%",
                               "{}",
                               "[]",
                               "\"\""};

template <size_t N>
std::string pick(Random& random, const char* const (&from)[N]) {
  return from[below(random, N)];
}

void replace(std::string& text, const Span& span, const std::string& by) {
  text.replace(span.at, span.size, by);
}

void mutate(std::string& text, Random& random) {
  const std::vector<Span> all_lines = lines(text), all_words = words(text), all_numbers = numbers(text);
  const auto one = [&](const std::vector<Span>& from) { return from[below(random, from.size())]; };
  const auto copy = [&](const Span& span) { return text.substr(span.at, span.size); };
  switch (below(random, 13)) {
    case 0:
    case 1:
    case 2:
      if (!all_numbers.empty()) replace(text, one(all_numbers), pick(random, kNumbers));
      break;
    case 3:  // a line twice
      if (!all_lines.empty()) {
        const Span line = one(all_lines);
        text.insert(one(all_lines).at, copy(line) + "\n");
      }
      break;
    case 4:  // a line less
      if (!all_lines.empty()) replace(text, one(all_lines), "");
      break;
    case 5:  // two lines in the other order
      if (all_lines.size() > 1) {
        const size_t i = below(random, all_lines.size() - 1);
        const std::string first = copy(all_lines[i]), second = copy(all_lines[i + 1]);
        replace(text, all_lines[i + 1], first);
        replace(text, all_lines[i], second);
      }
      break;
    case 6:  // one word for another
    case 7:
      if (!all_words.empty()) {
        const std::string word = copy(one(all_words));
        replace(text, one(all_words), word);
      }
      break;
    case 8:
      text.insert(below(random, text.size() + 1), pick(random, kPieces));
      break;
    case 9:
      if (!all_words.empty()) text.insert(one(all_words).at, pick(random, kPieces));
      break;
    case 10: {  // deep
      const char* const open[] = {"[", "{a: ", "{\"a\":", "- "};
      const std::string piece = pick(random, open);
      std::string many;
      for (size_t i = below(random, 100) + 1; i > 0; --i) many += piece;
      text.insert(all_words.empty() ? 0 : one(all_words).at, many);
      break;
    }
    case 11:  // long
      if (!all_words.empty()) text.insert(one(all_words).at, std::string(1 + below(random, 5000), 'a'));
      break;
    case 12:
      text.resize(below(random, text.size() + 1));
      break;
  }
  if (below(random, 40) == 0) text.insert(below(random, text.size() + 1), 1, '\0');
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Random random(seed + 1);
  if (below(random, 3) == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::string text(reinterpret_cast<const char*>(data), size);
  for (size_t i = below(random, 3) + 1; i > 0; --i) mutate(text, random);
  text.resize(std::min(text.size(), max_size));
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
