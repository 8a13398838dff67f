#include "trainer/elastic/scontrol_line.h"

#include <ctime>

namespace sailor {

std::string scontrol_value(const std::string& line, const std::string& key) {
  const std::string padded = " " + line;
  const size_t begin = padded.find(" " + key + "=");
  if (begin == std::string::npos) return "";
  const size_t value = begin + key.size() + 2;
  return padded.substr(value, padded.find_first_of(" \n", value) - value);
}

std::optional<int64_t> time_in_scontrol(const std::string& line, const std::string& key) {
  std::tm local{};
  local.tm_isdst = -1;
  const std::string text = scontrol_value(line, key);
  if (!strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &local)) return std::nullopt;
  return std::mktime(&local);
}

}  // namespace sailor
