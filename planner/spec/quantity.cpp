#include "planner/spec/quantity.h"

#include <charconv>
#include <cmath>
#include <string>

namespace sailor {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

struct NumberAndUnit {
  double number;
  std::string_view unit;  // trimmed
};

// Splits a leading number from what follows it.
std::optional<NumberAndUnit> split(std::string_view text) {
  text = trimmed(text);
  size_t digit = text.find_first_of("0123456789.");
  if (digit == std::string_view::npos || digit > 1 || (digit == 1 && text[0] != '-')) return std::nullopt;
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  return NumberAndUnit{number, trimmed(text.substr(static_cast<size_t>(end - text.data())))};
}

// Factor of a prefix before `unit` ("Gi" before "B"), or nothing.
std::optional<double> prefix_factor(std::string_view prefix, bool binary_allowed) {
  if (prefix.empty()) return 1;
  double base = 1000;
  if (binary_allowed && prefix.size() == 2 && prefix[1] == 'i') {
    base = 1024;
    prefix.remove_suffix(1);
  }
  if (prefix.size() != 1) return std::nullopt;
  if (base == 1000 && prefix[0] == 'k') return base;
  size_t power = std::string_view("KMGTP").find(prefix[0]);
  if (power == std::string_view::npos) return std::nullopt;
  return std::pow(base, static_cast<double>(power + 1));
}

std::optional<double> scaled(double number, std::optional<double> factor) {
  if (!factor || !std::isfinite(number * *factor)) return std::nullopt;
  return number * *factor;
}

bool remove_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

// Digits only, as in the fields of HH:MM:SS.
std::optional<int> whole(std::string_view text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || text[0] == '-' || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

// [D-]HH:MM:SS
std::optional<double> clock_time(std::string_view text) {
  double seconds = 0;
  if (size_t dash = text.find('-'); dash != std::string_view::npos) {
    auto days = whole(text.substr(0, dash));
    if (!days) return std::nullopt;
    seconds = *days * 86400.0;
    text.remove_prefix(dash + 1);
  }
  size_t first = text.find(':');
  size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  auto hours = whole(text.substr(0, first));
  auto minutes = whole(text.substr(first + 1, second - first - 1));
  auto rest = whole(text.substr(second + 1));
  if (!hours || !minutes || !rest || *minutes > 59 || *rest > 59) return std::nullopt;
  return seconds + *hours * 3600.0 + *minutes * 60.0 + *rest;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  auto parts = split(text);
  if (!parts || !parts->unit.empty()) return std::nullopt;
  return parts->number;
}

std::optional<double> parse_bytes(std::string_view text) {
  auto parts = split(text);
  if (!parts) return std::nullopt;
  std::string_view unit = parts->unit;
  if (!unit.empty() && !remove_suffix(unit, "B")) return std::nullopt;
  return scaled(parts->number, prefix_factor(unit, true));
}

std::optional<double> parse_rate(std::string_view text) {
  auto parts = split(text);
  if (!parts) return std::nullopt;
  std::string_view unit = parts->unit;
  if (unit.empty()) return parts->number;
  if (!remove_suffix(unit, "/s")) return std::nullopt;
  if (remove_suffix(unit, "B")) return scaled(parts->number, prefix_factor(unit, true));
  if (remove_suffix(unit, "bit") || remove_suffix(unit, "b")) {
    return scaled(parts->number / 8, prefix_factor(unit, false));
  }
  return std::nullopt;
}

std::optional<double> parse_duration(std::string_view text) {
  text = trimmed(text);
  if (text.find(':') != std::string_view::npos) return clock_time(text);
  double total = 0;
  bool more = true;
  for (int part = 0; more && part < 5; ++part) {
    auto parts = split(text);
    if (!parts) return std::nullopt;
    size_t unit_end = parts->unit.find_first_not_of("abcdefghijklmnopqrstuvwxyz");
    std::string_view unit = parts->unit.substr(0, unit_end);
    more = unit_end != std::string_view::npos;
    if (more) text = parts->unit.substr(unit_end);
    double factor = 0;
    if (unit.empty() && part == 0 && !more) {
      factor = 1;
    } else if (unit == "us") {
      factor = 1e-6;
    } else if (unit == "ms") {
      factor = 1e-3;
    } else if (unit == "s") {
      factor = 1;
    } else if (unit == "m" || unit == "min") {
      factor = 60;
    } else if (unit == "h") {
      factor = 3600;
    } else if (unit == "d") {
      factor = 86400;
    } else {
      return std::nullopt;
    }
    if (part > 0 && parts->number < 0) return std::nullopt;
    total += parts->number * factor;
  }
  if (more || !std::isfinite(total)) return std::nullopt;
  return total;
}

std::optional<double> parse_money(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with("$")) return parse_number(text.substr(1));
  if (text.ends_with("USD")) return parse_number(text.substr(0, text.size() - 3));
  return parse_number(text);
}

std::optional<double> parse_energy(std::string_view text) {
  auto parts = split(text);
  if (!parts) return std::nullopt;
  std::string_view unit = parts->unit;
  if (unit.empty()) return parts->number;
  if (remove_suffix(unit, "J")) return scaled(parts->number, prefix_factor(unit, false));
  if (remove_suffix(unit, "Wh")) return scaled(parts->number * 3600, prefix_factor(unit, false));
  return std::nullopt;
}

}  // namespace sailor
