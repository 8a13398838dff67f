// The simulator's data about other hardware and software: the catalog, platforms and framework descriptions,
// and calibrations of their constants. Value types.
//
// A calibration file (JSON) has constants that were fitted to measured runs, and describes these runs:
//     {"sailor_calibration": 1,
//      "framework": "NAME",
//      "constants": {"gpu_types.NAME.efficiency.gemm": 0.82, "platforms.NAME.host_block_s": 1.1e-3,
//                    "platforms.NAME.links.LINK.node_bytes_per_s": 8.7e10, "frameworks.NAME.overlap": 0.5},
//      "provenance": {"set": "NAME", "data": "FILE", "rule": "every 11th row", "rows": ["17", "28"],
//                     "mean_error_pct": 6.5}}
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/profile/platform.h"
#include "planner/spec/catalog.h"
#include "planner/spec/framework_style.h"

namespace sailor {

struct Assumptions {
  Catalog catalog;
  std::map<std::string, Platform> platforms;
  std::map<std::string, FrameworkStyle> frameworks;

  // Both throw InputError with the known names.
  const Platform& platform(const std::string& name) const;
  const FrameworkStyle& framework(const std::string& name) const;
};

struct Calibration {
  std::string file;
  std::string framework;                    // the constants are for its runs; empty = for all
  std::map<std::string, double> constants;  // by path
  std::string set, data, rule;
  std::vector<std::string> rows;
  double mean_error_pct = 0;                 // on those rows
  std::optional<double> left_out_error_pct;  // of rows that calibrated nothing when they were predicted
};

// DIR/catalog.yaml, DIR/platforms/*.yaml, DIR/frameworks/*.yaml.
Assumptions load_assumptions(const std::string& directory);
// Sets one constant by its path. Throws InputError when there is no such constant.
void set_constant(Assumptions& assumptions, const std::string& path, double value);
void apply(const Calibration& calibration, Assumptions& assumptions);
// For planning with one framework: does nothing when the constants are for another one; constants of
// platforms and of other frameworks do not matter here.
void apply(const Calibration& calibration, Catalog& catalog, FrameworkStyle& framework);

Calibration load_calibration(const std::string& path);
Calibration parse_calibration(const std::string& json, const std::string& file_name);
std::string to_json(const Calibration& calibration);

}  // namespace sailor
