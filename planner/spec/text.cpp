#include "planner/spec/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sailor {
namespace {

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Edit distance in half edits: a different case costs 1, every other edit 2.
int distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = 2 * static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = 2 * static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      int change = a[i - 1] == b[j - 1] ? 0 : lower(a[i - 1]) == lower(b[j - 1]) ? 1 : 2;
      d[i][j] = std::min({d[i - 1][j] + 2, d[i][j - 1] + 2, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 2);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr size_t kLongest = 60;
  bool cut = text.size() > kLongest;
  if (cut) {
    text = text.substr(0, kLongest);
    // Never end in the middle of a UTF-8 sequence.
    while (!text.empty() && (text.back() & 0xC0) == 0x80) text.remove_suffix(1);
    if (!text.empty() && (text.back() & 0x80)) text.remove_suffix(1);
  }
  std::string out = "\"";
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (is_control(c)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + (cut ? "...\"" : "\"");
}

std::string one_line(std::string_view text) {
  std::string out(text);
  std::replace_if(out.begin(), out.end(), is_control, ' ');
  return out;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > 100) return {};
  std::string best;
  int best_distance = 0;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > 100) continue;
    int d = distance(word, candidate);
    if (best.empty() || d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  int longest = static_cast<int>(std::max(word.size(), best.size()));
  if (best_distance <= std::max(3, 2 * longest / 3)) return best;
  // A name that was not written to its end, such as a GPU type without its memory.
  constexpr size_t kLeastBeginning = 3;
  for (const std::string& candidate : candidates)
    if (word.size() >= kLeastBeginning && candidate.size() > word.size() &&
        std::equal(word.begin(), word.end(), candidate.begin(),
                   [](char a, char b) { return lower(a) == lower(b); }))
      return candidate;
  return {};
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best = nearest(word, candidates);
  return best.empty() ? best : ", did you mean " + in_quotes(best) + "?";
}

std::string alternatives(const std::vector<std::string>& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

std::string duration_text(double seconds) {
  if (seconds <= 90) return fmt::format("{:.0f} s", std::ceil(seconds));
  const double minutes = std::ceil(seconds / 60);
  if (minutes <= 90) return fmt::format("{:.0f} min", minutes);
  if (minutes > 48 * 60) return fmt::format("{:.0f} days", std::ceil(minutes / (24 * 60)));
  const double hours = std::floor(minutes / 60), rest = minutes - 60 * hours;
  return rest == 0 ? fmt::format("{:.0f} h", hours) : fmt::format("{:.0f} h {:.0f} min", hours, rest);
}

}  // namespace sailor
