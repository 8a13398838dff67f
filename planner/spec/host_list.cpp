#include "planner/spec/host_list.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "planner/spec/error.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

[[noreturn]] void fail(std::string_view list, const std::string& what) {
  throw InputError(fmt::format("{} is not a host list such as h[1-3,7]: {}", in_quotes(list), what));
}

// Splits at the commas outside brackets.
std::vector<std::string_view> items_of(std::string_view list) {
  std::vector<std::string_view> items;
  size_t begin = 0;
  bool inside = false;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') {
      if (inside) fail(list, "a bracket inside a bracket");
      inside = true;
    } else if (i < list.size() && list[i] == ']') {
      if (!inside) fail(list, "a bracket is closed that was not opened");
      inside = false;
    } else if (i == list.size() || (list[i] == ',' && !inside)) {
      items.push_back(list.substr(begin, i - begin));
      if (items.back().empty()) fail(list, "a name is empty");
      begin = i + 1;
    }
  }
  if (inside) fail(list, "a bracket is not closed");
  return items;
}

int number_of(std::string_view list, std::string_view digits) {
  int number = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || digits.size() > 9 || error != std::errc() || stop != digits.data() + digits.size() ||
      number < 0)
    fail(list, in_quotes(digits) + " is not a number of at most 9 digits");
  return number;
}

// `1-3,7` -> 1, 2, 3, 7, as text.
std::vector<std::string> numbers_of(std::string_view list, std::string_view ranges) {
  std::vector<std::string> numbers;
  for (size_t begin = 0; begin <= ranges.size();) {
    const size_t end = std::min(ranges.find(',', begin), ranges.size());
    const std::string_view range = ranges.substr(begin, end - begin);
    const size_t dash = std::min(range.find('-'), range.size());
    const std::string_view low = range.substr(0, dash);
    const int first = number_of(list, low);
    const int last = dash < range.size() ? number_of(list, range.substr(dash + 1)) : first;
    if (last < first) fail(list, fmt::format("the range {} descends", range));
    if (last - first >= kMostHosts) fail(list, fmt::format("more than {} names", kMostHosts));
    for (int number = first; number <= last; ++number)
      numbers.push_back(fmt::format("{:0{}}", number, low.size()));
    if (numbers.size() > kMostHosts) fail(list, fmt::format("more than {} names", kMostHosts));
    begin = end + 1;
  }
  return numbers;
}

}  // namespace

std::vector<std::string> expand_host_list(const std::string& list) {
  std::vector<std::string> names;
  for (const std::string_view item : items_of(list)) {
    std::vector<std::string> grown = {""};
    for (size_t at = 0; at < item.size();) {
      const size_t open = std::min(item.find('[', at), item.size());
      for (std::string& name : grown) name += item.substr(at, open - at);
      if (open == item.size()) break;
      const size_t close = item.find(']', open);
      const std::vector<std::string> numbers = numbers_of(list, item.substr(open + 1, close - open - 1));
      if (grown.size() * numbers.size() > kMostHosts)
        fail(list, fmt::format("more than {} names", kMostHosts));
      std::vector<std::string> longer;
      for (const std::string& name : grown)
        for (const std::string& number : numbers) longer.push_back(name + number);
      grown = std::move(longer);
      at = close + 1;
    }
    if (names.size() + grown.size() > kMostHosts) fail(list, fmt::format("more than {} names", kMostHosts));
    names.insert(names.end(), grown.begin(), grown.end());
  }
  return names;
}

}  // namespace sailor
