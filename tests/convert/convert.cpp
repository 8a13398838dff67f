#include "tests/convert/convert.h"

#include "planner/spec/text.h"

namespace sailor::convert {

const std::vector<std::string>& set_names() {
  static const std::vector<std::string> names = {"sailor", "vtrain-single", "vtrain-multi", "ultrascale",
                                                 "golden", "bigscience",    "amp",          "mosaic"};
  return names;
}

std::vector<MeasuredRun> convert(const std::string& set, const std::string& path) {
  if (set == "sailor") return convert_sailor(path);
  if (set == "vtrain-single" || set == "vtrain-multi") return convert_vtrain(path);
  if (set == "ultrascale") return convert_ultrascale(path);
  if (set == "golden") return convert_golden(path);
  if (set == "bigscience") return convert_bigscience(path);
  if (set == "amp") return convert_amp(path);
  if (set == "mosaic") return convert_mosaic(path);
  throw InputError("unknown set \"" + set + "\"" + did_you_mean(set, set_names()));
}

}  // namespace sailor::convert
