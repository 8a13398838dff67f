// When, where and with what something was measured: what a profile must say of itself so that one can tell
// whether it still holds. Value type; an empty field is not known.
#pragma once

#include <ctime>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "planner/spec/field.h"

namespace sailor {

struct MeasuredWith {
  std::string at;         // UTC, "2026-11-21T22:43:00Z"
  std::string host;       // of several, one of them
  std::string device;     // processor or GPU, as it calls itself
  std::string driver;     // of a GPU
  std::string libraries;  // that compute and send, with their versions
  int ranks = 0;          // at work on the machine at once
  std::string remark;     // free text; all that older files have

  // One line for people.
  std::string text() const;
};

// The same device, driver and libraries, as far as both say: whether figures may stand in one file.
bool same_equipment(const MeasuredWith& a, const MeasuredWith& b);

// A time as MeasuredWith::at.
std::string utc_time(std::time_t seconds);

// Days from `measured.at` to `now`, a time of the same form; 0 when one of them is not known or not a time.
double age_days(const MeasuredWith& measured, const std::string& now);

// Of a file's key `measured`: a map, or text, which becomes the remark. Throws InputError.
MeasuredWith read_measured_with(const Field& field);
nlohmann::ordered_json to_json(const MeasuredWith& measured);

}  // namespace sailor
