#include "planner/spec/lora_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "planner/spec/field.h"
#include "planner/spec/lora_parameters.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

constexpr int kMostRank = 65'536;

bool is_end_of(const std::string& module, const std::string& target) {
  if (module == target) return true;
  const size_t tail = target.size() + 1;
  return module.size() > tail && module.compare(module.size() - tail, tail, "." + target) == 0;
}

std::string read_target(const Field& field, const std::vector<std::string>& modules) {
  const std::string target = field.text();
  if (std::any_of(modules.begin(), modules.end(), [&](const auto& m) { return is_end_of(m, target); }))
    return target;
  std::vector<std::string> known = last_words(modules);
  field.fail(fmt::format("{} is no linear layer of this model's blocks{} (known: {}; or {} for all)",
                         in_quotes(target), did_you_mean(target, known), fmt::join(known, ", "), kAllLinear));
}

}  // namespace

bool LoraSpec::targets(const std::string& module) const {
  return std::any_of(target_modules.begin(), target_modules.end(),
                     [&](const std::string& target) { return is_end_of(module, target); });
}

LoraSpec read_lora(const Field& field, const ModelSpec& model) {
  const MapField map(field, {"r", "alpha", "target_modules", "dropout"});
  if (model.from.empty()) field.fail("needs the weights of a base model: name its directory in model.from");
  LoraSpec lora;
  lora.r = map.required("r").integer<int>(1, kMostRank);
  lora.alpha = lora.r;
  if (const auto alpha = map.optional("alpha")) lora.alpha = alpha->positive();
  if (const auto dropout = map.optional("dropout"); dropout && dropout->number(0, 1) != 0)
    dropout->fail("adapters have no dropout of their own; leave it out, or set it to 0");
  const std::vector<std::string> modules = linear_modules(model);
  const auto targets = map.optional("target_modules");
  if (!targets || (!targets->is_sequence() && targets->text() == kAllLinear)) {
    lora.target_modules = last_words(modules);
    return lora;
  }
  if (!targets->is_sequence()) targets->fail_type(fmt::format("a list of modules, or {}", kAllLinear));
  for (const Field& item : targets->items()) {
    lora.target_modules.push_back(read_target(item, modules));
    if (std::count(lora.target_modules.begin(), lora.target_modules.end(), lora.target_modules.back()) > 1)
      item.fail(in_quotes(lora.target_modules.back()) + " is listed twice");
  }
  if (lora.target_modules.empty()) targets->fail("names no modules");
  return lora;
}

}  // namespace sailor
