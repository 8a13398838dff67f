#include "planner/spec/json_parts.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace sailor {
namespace {

constexpr size_t kNone = std::string_view::npos;
constexpr size_t kMostLevels = 64;

// Characters that mean something outside of strings where only the end of a value is looked for.
constexpr std::array<bool, 256> kStructure = [] {
  std::array<bool, 256> is{};
  for (unsigned char c : {'"', '{', '}', '[', ']'}) is[c] = true;
  return is;
}();

class Scanner {
 public:
  Scanner(std::string_view text, const std::function<JsonPart(const JsonPath&)>& wanted)
      : text_(text), wanted_(wanted) {}

  std::string run() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '{') members();
    copy_to(text_.size());  // what follows, or all from where it went wrong
    return std::move(out_);
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) != nullptr && text_[at_] != '\0') ++at_;
  }
  void copy_to(size_t end) {
    out_.append(text_.substr(copied_, end - copied_));
    copied_ = end;
  }

  // The place behind the string that begins at `at`; kNone when it does not end.
  size_t end_of_string(size_t at) const {
    for (++at; at < text_.size(); ++at) {
      if (text_[at] == '\\')
        ++at;
      else if (text_[at] == '"')
        return at + 1;
    }
    return kNone;
  }

  // The place behind the value that begins at `at`.
  size_t end_of_value(size_t at) const {
    const char first = at < text_.size() ? text_[at] : '\0';
    if (first == '"') return end_of_string(at);
    if (first != '{' && first != '[') {
      const size_t end = text_.find_first_of(",}] \t\r\n", at);
      return end == at ? kNone : std::min(end, text_.size());
    }
    int depth = 0;
    for (; at < text_.size(); ++at) {
      const char c = text_[at];
      if (!kStructure[static_cast<unsigned char>(c)]) continue;
      if (c == '"') {
        at = end_of_string(at);
        if (at == kNone) return kNone;
        --at;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (--depth == 0) {
        return at + 1;
      }
    }
    return kNone;
  }

  // Reads the object that begins here, to behind its end; false when it is not well formed.
  bool members() {
    ++at_;
    while (true) {
      skip_space();
      if (at_ < text_.size() && text_[at_] == '}') {
        ++at_;
        return true;
      }
      if (at_ >= text_.size() || text_[at_] != '"') return false;
      const size_t key = at_ + 1, key_end = end_of_string(at_);
      if (key_end == kNone) return false;
      path_.push_back(text_.substr(key, key_end - 1 - key));
      at_ = key_end;
      skip_space();
      if (at_ >= text_.size() || text_[at_] != ':') return false;
      ++at_;
      skip_space();
      if (!value()) return false;
      path_.pop_back();
      skip_space();
      if (at_ < text_.size() && text_[at_] == ',') ++at_;
    }
  }

  bool value() {
    // A key with escapes is not compared: what it names is kept.
    const bool plain = path_.back().find('\\') == kNone;
    JsonPart part = plain ? wanted_(path_) : JsonPart::whole;
    if (part == JsonPart::members) {
      if (at_ < text_.size() && text_[at_] == '{' && path_.size() < kMostLevels) return members();
      part = JsonPart::whole;
    }
    const size_t end = end_of_value(at_);
    if (end == kNone) return false;
    if (part == JsonPart::nothing) {
      copy_to(at_);
      out_ += "null";
      const std::string_view left_out = text_.substr(at_, end - at_);
      out_.append(static_cast<size_t>(std::count(left_out.begin(), left_out.end(), '\n')), '\n');
      copied_ = end;
    }
    at_ = end;
    return true;
  }

  std::string_view text_;
  const std::function<JsonPart(const JsonPath&)>& wanted_;
  JsonPath path_;
  std::string out_;
  size_t at_ = 0;
  size_t copied_ = 0;  // everything before it is in out_, or omitted
};

}  // namespace

std::string keep_json_parts(std::string_view json, const std::function<JsonPart(const JsonPath&)>& wanted) {
  return Scanner(json, wanted).run();
}

}  // namespace sailor
