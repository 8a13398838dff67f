#include "trainer/data/tokenize/huggingface/tables.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "planner/spec/json_parts.h"

namespace sailor {
namespace {

using Json = nlohmann::json;

bool is_table(const JsonPath& path) {
  return path.size() == 2 && path[0] == "model" && (path[1] == "vocab" || path[1] == "merges");
}
bool is_model(const JsonPath& path) {
  return path.size() == 1 && path[0] == "model";
}

// Builds the tree of a text, like Json::parse() but for the values of numbers.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t, const string_t& text) override { return add(serde_number(text)); }
  bool string(string_t& text) override { return add(std::move(text)); }
  bool binary(binary_t&) override { return false; }  // not in JSON text
  bool start_object(std::size_t) override { return add(Json::object(), true); }
  bool start_array(std::size_t) override { return add(Json::array(), true); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(string_t& text) override {
    key_ = std::move(text);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool add(Json value, bool opens = false) {
    Json* added = &root_;
    if (open_.empty())
      root_ = std::move(value);
    else if (open_.back()->is_array())
      added = &open_.back()->emplace_back(std::move(value));
    else
      added = &((*open_.back())[key_] = std::move(value));
    if (opens) open_.push_back(added);
    return true;
  }
  bool end() {
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Json*> open_;
  std::string key_;
};

}  // namespace

double serde_number(std::string_view text) {
  uint64_t digits = 0;
  int exponent = 0;
  bool fraction = false, full = false;
  std::size_t at = text.starts_with('-') ? 1 : 0;
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    if (text[at] == '.') {
      fraction = true;
      continue;
    }
    const auto digit = static_cast<uint64_t>(text[at] - '0');
    full = full || digits > (std::numeric_limits<uint64_t>::max() - digit) / 10;
    if (!full) digits = digits * 10 + digit;
    if (fraction && !full) --exponent;
    if (!fraction && full) ++exponent;
  }
  if (at < text.size()) exponent += std::atoi(std::string(text.substr(at + 1)).c_str());
  auto power_of_ten = [](int power) { return std::strtod(fmt::format("1e{}", power).c_str(), nullptr); };
  auto value = static_cast<double>(digits);
  constexpr int kMostPower = 308;
  for (; exponent < -kMostPower && value != 0; exponent += kMostPower) value /= 1e308;
  if (value != 0)
    value = exponent >= 0 ? value * power_of_ten(std::min(exponent, kMostPower))
                          : value / power_of_ten(-exponent);
  return text.starts_with('-') ? -value : value;
}

nlohmann::json parse_tables(std::string_view text) {
  const std::string tables = keep_json_parts(text, [](const JsonPath& path) {
    return is_table(path) ? JsonPart::whole : is_model(path) ? JsonPart::members : JsonPart::nothing;
  });
  Builder builder;
  if (!Json::sax_parse(tables, &builder)) return {};
  const Json all = builder.take();
  return all.is_object() && all.contains("model") ? all["model"] : Json();
}

std::string without_tables(std::string_view text) {
  return keep_json_parts(text, [](const JsonPath& path) {
    return is_table(path) ? JsonPart::nothing : is_model(path) ? JsonPart::members : JsonPart::whole;
  });
}

const nlohmann::json& table_of(const nlohmann::json& tables, const char* key) {
  static const Json kNone;
  const auto found = tables.find(key);
  return found == tables.end() ? kNone : *found;
}

void fail_table(const Field& model, const std::string& key, const std::string& what) {
  throw InputError(model.where(), fmt::format("model.{}: {}", key, what));
}

}  // namespace sailor
