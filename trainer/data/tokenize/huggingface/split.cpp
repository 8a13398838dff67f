#include "trainer/data/tokenize/huggingface/split.h"

#include <algorithm>
#include <utility>

namespace sailor {
namespace {

struct Part {
  Span span;
  bool is_match;
};

// The matches and what is between them.
std::vector<Part> parts_of(const std::vector<Span>& matches, std::size_t begin, std::size_t end,
                           bool inverted) {
  std::vector<Part> parts;
  std::size_t at = begin;
  for (const Span& match : matches) {
    if (match.begin > at) parts.push_back({{at, match.begin}, inverted});
    parts.push_back({match, !inverted});
    at = match.end;
  }
  if (end > at) parts.push_back({{at, end}, inverted});
  return parts;
}

void merge(std::vector<Part>& parts, SplitBehavior behavior) {
  const bool backwards = behavior == SplitBehavior::merged_with_next;
  if (backwards) std::reverse(parts.begin(), parts.end());
  std::vector<Part> merged;
  bool previous_is_match = false;
  for (const Part& part : parts) {
    const bool joins = behavior == SplitBehavior::contiguous ? part.is_match == previous_is_match
                                                             : part.is_match && !previous_is_match;
    if (joins && !merged.empty()) {
      Span& last = merged.back().span;
      last = backwards ? Span{part.span.begin, last.end} : Span{last.begin, part.span.end};
    } else {
      merged.push_back(part);
    }
    previous_is_match = part.is_match;
  }
  if (backwards) std::reverse(merged.begin(), merged.end());
  parts = std::move(merged);
}

}  // namespace

SplitBehavior read_split_behavior(const Field& field) {
  static const std::vector<std::string> names = {"Removed", "Isolated", "MergedWithPrevious",
                                                 "MergedWithNext", "Contiguous"};
  return static_cast<SplitBehavior>(field.choice(names));
}

void split(Segment& segment, const FindMatches& find, SplitBehavior behavior, bool inverted) {
  Segment result;
  result.at_start = segment.at_start;
  result.text.reserve(segment.text.size());
  std::vector<Span> matches;
  std::size_t begin = 0;
  for (const std::size_t end : segment.ends) {
    matches.clear();
    find(segment.text, begin, end, matches);
    std::vector<Part> parts = parts_of(matches, begin, end, inverted);
    if (behavior != SplitBehavior::removed && behavior != SplitBehavior::isolated) merge(parts, behavior);
    for (const auto& [span, is_match] : parts) {
      if (span.begin == span.end) continue;
      if (behavior == SplitBehavior::removed && is_match) {
        if (span.begin == 0) result.at_start = false;
        continue;
      }
      result.text.append(segment.text, span.begin, span.end - span.begin);
      result.ends.push_back(result.text.size());
    }
    begin = end;
  }
  segment = std::move(result);
}

}  // namespace sailor
