// When, where and with what something was measured, so that a reader can judge whether a profile is still
// valid. Value type; an empty field is unknown.
#pragma once

#include <ctime>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "planner/spec/field.h"

namespace sailor {

struct MeasuredWith {
  std::string at;         // UTC, "2026-11-21T22:43:00Z"
  std::string host;       // one of them, if there were several
  std::string device;     // processor or GPU, by its own name
  std::string driver;     // of a GPU
  std::string libraries;  // computation and communication libraries, with versions
  int ranks = 0;          // concurrent ranks on the machine
  std::string remark;     // free text; older files have nothing else

  // One line of text.
  std::string text() const;
};

// Are device, driver and libraries equal where both are known, so that values may be in one file?
bool same_equipment(const MeasuredWith& a, const MeasuredWith& b);

// A time in the form of MeasuredWith::at.
std::string utc_time(std::time_t seconds);

// Days from `measured.at` to `now`, a time of the same form; 0 if one of them is unknown or invalid.
double age_days(const MeasuredWith& measured, const std::string& now);

// Reads the key `measured` of a file: a map, or text, which becomes the remark. Throws InputError.
MeasuredWith read_measured_with(const Field& field);
nlohmann::ordered_json to_json(const MeasuredWith& measured);

}  // namespace sailor
