#include "planner/report/calibration_table.h"

#include <fmt/format.h>

#include <filesystem>

namespace sailor {
namespace {

std::string error_row(const char* name, const char* what, const std::vector<Pair>& pairs,
                      const std::optional<double>& gap) {
  if (pairs.empty()) return "";
  const ErrorSummary e = summarize(pairs);
  return fmt::format("{:<12} {:<7} {:>5} {:>8.2f} {:>8.2f} {:>8.2f} {:>7}\n", name, what, e.n, e.mean_pct,
                     e.median_pct, e.max_pct, gap ? fmt::format("{:.2f}", *gap) : "-");
}

std::string error_rows(const char* name, const std::vector<RunOutcome>& outcomes) {
  return error_row(name, "time", time_pairs(outcomes), oracle_gap_pct(outcomes)) +
         error_row(name, "memory", memory_pairs(outcomes), std::nullopt);
}

}  // namespace

Calibration calibration_of(const FittedConstants& fitted, const std::string& dataset) {
  Calibration calibration;
  calibration.framework = fitted.framework;
  calibration.constants = fitted.values;
  calibration.set = fitted.framework;
  calibration.data = std::filesystem::path(dataset).lexically_normal().filename().string();
  calibration.rule = "every run with a time";
  for (const RunOutcome& outcome : fitted.calibrated) calibration.rows.push_back(outcome.row);
  calibration.mean_error_pct = summarize(time_pairs(fitted.calibrated)).mean_pct;
  if (!fitted.left_out.empty())
    calibration.left_out_error_pct = summarize(time_pairs(fitted.left_out)).mean_pct;
  return calibration;
}

std::string calibration_table(const FittedConstants& fitted) {
  std::string out = fmt::format("{} run{} of {}\n\n{:<12} {:<7} {:>5} {:>8} {:>8} {:>8} {:>7}\n",
                                fitted.calibrated.size(), fitted.calibrated.size() == 1 ? "" : "s",
                                fitted.framework, "ERRORS (%)", "OF", "RUNS", "MEAN", "MEDIAN", "MAX", "GAP");
  out += error_rows("described", fitted.described);
  out += error_rows("calibrated", fitted.calibrated);
  out += error_rows("left out", fitted.left_out);
  out += fmt::format("\n{:<44} {:>11} {:>11}\n", "CONSTANT", "EXPECTED", "FITTED");
  for (const FreeConstant& constant : fitted.constants)
    out += fmt::format("{:<44} {:>11.4g} {:>11.4g}\n", constant.path, constant.expected,
                       fitted.values.at(constant.path));
  return out;
}

}  // namespace sailor
