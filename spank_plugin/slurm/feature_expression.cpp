#include "spank_plugin/slurm/feature_expression.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/spec/error.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

// Recursive descent over the text; one object per evaluation.
class Evaluation {
 public:
  Evaluation(const std::vector<std::string>& features, const std::string& text)
      : features_(features), text_(text) {}

  bool run() {
    if (text_.find_first_of("[]*") != std::string::npos) {
      throw InputError(fmt::format(
          "--constraint={}: counts and brackets are not supported together with a plan; name features with "
          "&, | and parentheses",
          text_));
    }
    bool result = expression();
    if (at_ < text_.size()) malformed();
    return result;
  }

 private:
  // Bounds the recursion; no one nests as deep.
  static constexpr int kDeepest = 100;

  bool expression() {
    bool result = term();
    while (at_ < text_.size() && (text_[at_] == '&' || text_[at_] == ',' || text_[at_] == '|')) {
      bool either = text_[at_++] == '|';
      bool next = term();  // always parsed, even if not needed
      result = either ? result || next : result && next;
    }
    return result;
  }

  bool term() {
    if (at_ < text_.size() && text_[at_] == '(') {
      if (++depth_ > kDeepest) malformed();
      ++at_;
      bool result = expression();
      if (at_ >= text_.size() || text_[at_] != ')') malformed();
      ++at_;
      --depth_;
      return result;
    }
    size_t end = std::min(text_.find_first_of("&|,()", at_), text_.size());
    if (end == at_) malformed();
    std::string feature = text_.substr(at_, end - at_);
    at_ = end;
    return std::find(features_.begin(), features_.end(), feature) != features_.end();
  }

  [[noreturn]] void malformed() const {
    throw InputError(fmt::format("--constraint: {} is not a feature expression, see character {}",
                                 in_quotes(text_), at_ + 1));
  }

  const std::vector<std::string>& features_;
  const std::string& text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

bool satisfies(const std::vector<std::string>& features, const std::string& expression) {
  return Evaluation(features, expression).run();
}

}  // namespace sailor
