// Internals of Evaluator that its two source files share.
#pragma once

#include <fmt/format.h>

#include <optional>

#include "trainer/data/tokenize/jinja/evaluator.h"

namespace sailor::jinja {

struct Evaluator::Level {
  explicit Level(Evaluator& evaluator) : levels(evaluator.levels_) {
    evaluator.budget_.charge(kWorkPerNode);
    if (++levels > kMostCallLevels) {
      --levels;
      throw TemplateError(fmt::format("calls and blocks nest more than {} levels deep", kMostCallLevels));
    }
  }
  ~Level() { --levels; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

  static constexpr std::size_t kWorkPerNode = 32;
  int& levels;
};

// A loop that runs. Items that its condition rejects are never seen; the condition is tested when the loop
// arrives at an item, or looks for the one behind the current.
struct Evaluator::Loop {
  std::vector<Value> items;
  const Statement& statement;
  Scope& around;
  Evaluator& evaluator;
  std::size_t at = 0;  // of what comes after `next`
  std::optional<Value> previous = {}, current = {}, next = {};
  int64_t index = 0;    // of the current item, from 0
  int depth = 0;        // of loops around this one
  bool passed = false;  // the items have passed the condition
  Loop* outer = nullptr;

  // The item behind the current one, without going there.
  const std::optional<Value>& peek();
  // Goes to the next item; false behind the last one.
  bool advance();
  int64_t length();
};

}  // namespace sailor::jinja
