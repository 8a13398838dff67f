// Converts published runs to the product's run format. Properties that all rows of a data set share but do
// not contain (the machine, the vocabulary, the framework and its switches) are in the converter of that set,
// with their source.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/measured_run.h"

namespace sailor::convert {

// Names of the sets, as on the command line.
const std::vector<std::string>& set_names();
// All rows of a set's file (or, for `sailor`, directory) that describe a run. Rows with models that the
// product does not support (mixtures of experts, encoders) are skipped. Throws InputError.
std::vector<MeasuredRun> convert(const std::string& set, const std::string& path);

// The single converters.
std::vector<MeasuredRun> convert_sailor(const std::string& directory);
std::vector<MeasuredRun> convert_vtrain(const std::string& path);
std::vector<MeasuredRun> convert_ultrascale(const std::string& path);
std::vector<MeasuredRun> convert_golden(const std::string& path);
std::vector<MeasuredRun> convert_bigscience(const std::string& path);
std::vector<MeasuredRun> convert_amp(const std::string& path);
std::vector<MeasuredRun> convert_mosaic(const std::string& path);

}  // namespace sailor::convert
