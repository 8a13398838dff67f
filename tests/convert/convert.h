// Other people's published runs in the product's own run format. What a data set's rows do not say but all of
// them share (the machine, the vocabulary, the framework and its switches) stands in the converter of that
// set, with its source.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/run_record.h"

namespace sailor::convert {

// Names of the sets, as on the command line.
const std::vector<std::string>& set_names();
// All rows of a set's file (or, for `sailor`, directory) that describe a run. Rows that are not runs of a
// model that the product knows (mixtures of experts, encoders) are left out. Throws InputError.
std::vector<RunRecord> convert(const std::string& set, const std::string& path);

// The single converters.
std::vector<RunRecord> convert_sailor(const std::string& directory);
std::vector<RunRecord> convert_vtrain(const std::string& path);
std::vector<RunRecord> convert_ultrascale(const std::string& path);
std::vector<RunRecord> convert_golden(const std::string& path);
std::vector<RunRecord> convert_bigscience(const std::string& path);
std::vector<RunRecord> convert_amp(const std::string& path);
std::vector<RunRecord> convert_mosaic(const std::string& path);

}  // namespace sailor::convert
