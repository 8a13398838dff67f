#include "tests/bench/evaluation/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "tests/bench/scenario.h"

namespace sailor::bench {
namespace {

std::string trimmed(const std::string& text) {
  const size_t from = text.find_first_not_of(' ');
  return from == std::string::npos ? "" : text.substr(from, text.find_last_not_of(' ') - from + 1);
}

std::string with_unit(double value, const std::string& unit) {
  return unit == "x" ? factor(value) : figure(value, 3) + " " + unit;
}

std::string list_of(const std::vector<PublishedTable::Ours>& ours, const std::string& unit) {
  std::string list;
  for (const PublishedTable::Ours& one : ours)
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", with_unit(one.value, unit), one.scenario);
  return list.empty() ? "-" : list;
}

// In the order of our values.
std::string published_again(const std::vector<PublishedTable::Ours>& ours, const std::string& unit) {
  std::string list;
  bool any = false;
  for (const PublishedTable::Ours& one : ours) {
    list += (list.empty() ? "" : ", ") + (one.published_again ? with_unit(*one.published_again, unit) : "-");
    any = any || one.published_again;
  }
  return any ? list : "-";
}

}  // namespace

std::vector<double> PublishedNumber::values() const {
  std::vector<double> out;
  size_t at = 0;
  while ((at = value.find_first_of("0123456789", at)) != std::string::npos) {
    size_t used = 0;
    out.push_back(std::stod(value.substr(at), &used));
    at += used;
  }
  return out;
}

std::vector<PublishedNumber> load_published_numbers(const std::string& path) {
  std::vector<PublishedNumber> numbers;
  if (!std::filesystem::exists(path)) return numbers;
  for (const CsvRow& row : read_csv(path))
    numbers.push_back(
        {row.text("where"), row.text("quantity"), row.text("value"), row.text("unit"), row.text("note")});
  return numbers;
}

std::vector<std::string> names_in(const std::string& text, const std::set<std::string>& names) {
  std::map<size_t, std::string> found;
  for (const std::string& name : names)
    if (const size_t at = text.find(name); at != std::string::npos) found[at] = name;
  std::vector<std::string> out;
  for (const auto& [at, name] : found) out.push_back(name);
  return out;
}

bool mentions(const std::string& text, const std::string& model) {
  if (text.find(model) != std::string::npos) return true;
  std::istringstream words(text);
  for (std::string word; words >> word;)
    if (word.size() >= 3 && model.starts_with(word)) return true;
  return false;
}

std::vector<std::pair<std::string, std::string>> named_values(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> out;
  size_t from = 0;
  while (from < text.size()) {
    const size_t to = std::min(text.find_first_of(",;", from), text.size());
    const std::string part = trimmed(text.substr(from, to - from));
    const size_t space = part.find(' ');
    if (space != std::string::npos) out.emplace_back(part.substr(0, space), part.substr(space + 1));
    from = to + 1;
  }
  return out;
}

PublishedTable::PublishedTable(std::string name, std::string caption) {
  table_.name = std::move(name);
  table_.caption = std::move(caption);
  table_.columns = {"quantity", "the paper", "theirs, rerun", "ours", "standing"};
}

void PublishedTable::add(const std::string& what, double published, const std::string& unit,
                         const std::vector<Ours>& ours, bool larger_is_better, const std::string& without) {
  if (ours.empty()) return add_uncounted(what, published, unit, {}, without);
  constexpr double kHalfAPerCent = 0.005;
  const auto all = static_cast<int>(ours.size());
  const auto good = static_cast<int>(std::count_if(ours.begin(), ours.end(), [&](const Ours& one) {
    return larger_is_better ? one.value >= published * (1 - kHalfAPerCent)
                            : one.value <= published * (1 + kHalfAPerCent);
  }));
  ++compared_;
  reached_ += good == all;
  partly_ += good > 0 && good < all;
  Cell standing = {"not reached", Mark::bad};
  if (good > 0) standing = fmt::format("reached by {} of {}", good, all);
  if (good == all) standing = {"reached", Mark::good};
  table_.add({what, with_unit(published, unit), published_again(ours, unit), list_of(ours, unit), standing});
}

void PublishedTable::add_uncounted(const std::string& what, double published, const std::string& unit,
                                   const std::vector<Ours>& ours, const std::string& why) {
  table_.add({what,
              with_unit(published, unit),
              published_again(ours, unit),
              list_of(ours, unit),
              {why, Mark::aside}});
}

void PublishedTable::add(const std::string& what, const std::string& published, const std::string& ours,
                         const std::string& standing) {
  table_.add({what, published, "-", ours, {standing, Mark::aside}});
}

}  // namespace sailor::bench
