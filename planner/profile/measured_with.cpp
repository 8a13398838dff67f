#include "planner/profile/measured_with.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace sailor {
namespace {

std::optional<std::time_t> seconds_of(const std::string& at) {
  std::tm parts{};
  const char* end = strptime(at.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return timegm(&parts);
}

bool differ(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}

}  // namespace

std::string MeasuredWith::text() const {
  std::vector<std::string> parts;
  if (!at.empty()) parts.push_back(at);
  if (!host.empty()) parts.push_back("on " + host);
  if (!device.empty()) parts.push_back(device);
  if (!driver.empty()) parts.push_back("driver " + driver);
  if (!libraries.empty()) parts.push_back(libraries);
  if (ranks > 0) parts.push_back(fmt::format("{} rank{} at once", ranks, ranks == 1 ? "" : "s"));
  if (!remark.empty()) parts.push_back(remark);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string utc_time(std::time_t seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(seconds));
}

bool same_equipment(const MeasuredWith& a, const MeasuredWith& b) {
  return !differ(a.device, b.device) && !differ(a.driver, b.driver) && !differ(a.libraries, b.libraries);
}

double age_days(const MeasuredWith& measured, const std::string& now) {
  const auto then = seconds_of(measured.at), today = seconds_of(now);
  return then && today ? std::difftime(*today, *then) / 86400 : 0;
}

MeasuredWith read_measured_with(const Field& field) {
  MeasuredWith measured;
  if (!field.is_map()) {
    measured.remark = field.text_or_empty();
    return measured;
  }
  MapField map(field, {"at", "host", "device", "driver", "libraries", "ranks", "remark"});
  const auto text = [&map](const char* key, std::string& target) {
    if (auto value = map.optional(key)) target = value->text_or_empty();
  };
  text("host", measured.host);
  text("device", measured.device);
  text("driver", measured.driver);
  text("libraries", measured.libraries);
  text("remark", measured.remark);
  if (auto at = map.optional("at")) {
    measured.at = at->text();
    if (!seconds_of(measured.at)) at->fail_type("a time such as 2026-11-21T22:43:00Z");
  }
  if (auto ranks = map.optional("ranks")) measured.ranks = ranks->integer<int>(1, 1'000'000);
  return measured;
}

nlohmann::ordered_json to_json(const MeasuredWith& measured) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  const auto put = [&json](const char* key, const std::string& value) {
    if (!value.empty()) json[key] = value;
  };
  put("at", measured.at);
  put("host", measured.host);
  put("device", measured.device);
  put("driver", measured.driver);
  put("libraries", measured.libraries);
  if (measured.ranks > 0) json["ranks"] = measured.ranks;
  put("remark", measured.remark);
  return json;
}

}  // namespace sailor
