#include "planner/spec/field.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "planner/spec/quantity.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

std::string describe(const DocumentNode& node) {
  switch (node.kind) {
    case DocumentNode::Kind::null:
      return "empty";
    case DocumentNode::Kind::sequence:
      return "a list";
    case DocumentNode::Kind::map:
      return "a map";
    case DocumentNode::Kind::scalar:
      break;
  }
  return node.is_string ? "the text " + in_quotes(node.scalar) : in_quotes(node.scalar);
}

}  // namespace

void Field::fail(const std::string& what) const {
  std::string path = document_->path_of(*node_);
  throw InputError(where(), path.empty() ? what : path + ": " + what);
}

void Field::fail_type(const std::string& expected) const {
  fail("must be " + expected + ", is " + describe(*node_));
}

int64_t Field::integer_between(int64_t min, int64_t max) const {
  std::string expected;
  if (max < std::numeric_limits<int32_t>::max()) {
    expected = fmt::format("an integer from {} to {}", min, max);
  } else {
    expected = fmt::format("an integer of at least {}", min);
  }
  if (!is_plain_scalar()) fail_type(expected);
  const std::string& text = node_->scalar;
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) fail("the number " + in_quotes(text) + " is too large");
  if (error != std::errc() || end != text.data() + text.size()) fail_type(expected);
  if (value > max && max >= std::numeric_limits<int32_t>::max())
    fail("the number " + in_quotes(text) + " is too large");
  if (value < min || value > max) fail_type(expected);
  return value;
}

double Field::number() const {
  if (!is_plain_scalar()) fail_type("a number");
  auto value = parse_number(node_->scalar);
  if (!value) fail_type("a finite number");
  return *value;
}

double Field::number(double min, double max) const {
  double value = number();
  if (value < min || value > max) fail_type(fmt::format("a number from {} to {}", min, max));
  return value;
}

double Field::positive() const {
  double value = number();
  if (!(value > 0)) fail_type("a number above 0");
  return value;
}

double Field::non_negative() const {
  double value = number();
  if (!(value >= 0)) fail_type("a number of at least 0");
  return value;
}

bool Field::boolean() const {
  if (is_plain_scalar() && node_->scalar == "true") return true;
  if (is_plain_scalar() && node_->scalar == "false") return false;
  fail_type("true or false");
}

std::string Field::text_or_empty() const {
  bool is_text = node_->kind == DocumentNode::Kind::scalar &&
                 (node_->is_string || document_->format == Document::Format::yaml);
  if (!is_text) fail_type("a text");
  return node_->scalar;
}

std::string Field::text() const {
  std::string value = text_or_empty();
  if (value.empty()) fail_type("a text that is not empty");
  return value;
}

std::string Field::name() const {
  std::string value = text();
  bool good = value.size() <= 200 && std::all_of(value.begin(), value.end(), [](char c) {
                return static_cast<unsigned char>(c) > 0x20 && c != 0x7f;
              });
  if (!good) fail_type("a name without spaces, of at most 200 characters");
  return value;
}

size_t Field::choice(const std::vector<std::string>& words) const {
  std::string value = text();
  auto it = std::find(words.begin(), words.end(), value);
  if (it == words.end()) {
    fail("must be " + alternatives(words) + ", is " + in_quotes(value) + did_you_mean(value, words));
  }
  return static_cast<size_t>(it - words.begin());
}

double Field::quantity(std::optional<double> (*parse)(std::string_view), const char* expected) const {
  if (node_->kind != DocumentNode::Kind::scalar) fail_type(expected);
  auto value = parse(node_->scalar);
  if (!value || *value < 0) fail_type(expected);
  return *value;
}

int64_t Field::bytes() const {
  double value = quantity(parse_bytes, "a size such as 80GiB or 512MiB");
  if (value >= 9.2e18) fail("the size " + in_quotes(node_->scalar) + " is too large");
  return std::llround(value);
}

double Field::bytes_per_s() const {
  return quantity(parse_rate, "a rate such as 400Gb/s or 1555GB/s");
}
double Field::duration_s() const {
  return quantity(parse_duration, "a duration such as 12h, 90s or 500ms");
}
double Field::usd() const {
  return quantity(parse_money, "an amount of at least 0, such as 1.2 USD");
}

double Field::quantity_above_0(std::optional<double> (*parse)(std::string_view), const char* expected) const {
  const double value = quantity(parse, expected);
  if (!(value > 0)) fail("must be above 0");
  return value;
}

std::vector<Field> Field::items() const {
  if (!is_sequence()) fail_type("a list");
  std::vector<Field> out;
  out.reserve(node_->children.size());
  for (const DocumentEntry& entry : node_->children) out.emplace_back(*document_, entry.node);
  return out;
}

std::vector<std::pair<std::string, Field>> Field::entries() const {
  if (!is_map()) fail_type("a map");
  std::vector<std::pair<std::string, Field>> out;
  out.reserve(node_->children.size());
  for (const DocumentEntry& entry : node_->children)
    out.emplace_back(entry.key, Field(*document_, entry.node));
  return out;
}

MapField::MapField(Field field, std::vector<std::string> known) : field_(field) {
  if (!field.is_map()) field.fail_type("a map");
  for (const DocumentEntry& entry : field.node().children) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    std::string path = field.document().path_of(field.node());
    std::string hint = did_you_mean(entry.key, known);
    throw InputError(
        {field.document().file, entry.key_line},
        (path.empty() ? "" : path + ": ") + "unknown key " + in_quotes(entry.key) +
            (hint.empty() ? " (known: " + fmt::format("{}", fmt::join(known, ", ")) + ")" : hint));
  }
}

Field MapField::required(std::string_view key) const {
  const DocumentNode* node = field_.node().find(key);
  if (node == nullptr) field_.fail("missing key " + in_quotes(key));
  Field found(field_.document(), *node);
  if (node->kind == DocumentNode::Kind::null) found.fail("a value is missing");
  return found;
}

std::optional<Field> MapField::optional(std::string_view key) const {
  const DocumentNode* node = field_.node().find(key);
  if (node == nullptr || node->kind == DocumentNode::Kind::null) return std::nullopt;
  return Field(field_.document(), *node);
}

void require_version(const MapField& map, const std::string& key, int version) {
  Field field = map.required(key);
  int found = field.integer<int>(0, 1'000'000);
  if (found != version) {
    field.fail(fmt::format("version {} is not supported, this program reads version {}", found, version));
  }
}

}  // namespace sailor
