#include "tests/convert/sailor_profiles.h"

#include "planner/profile/disturbed_times.h"
#include "planner/profile/kernels.h"
#include "planner/spec/field.h"
#include "planner/spec/text_file.h"
#include "tests/convert/convert.h"

namespace sailor::convert {
namespace {

constexpr int kProfiledSequence = 2048;
constexpr int kRows = 50304;  // of the vocabulary, padded
constexpr int kNarrow = 1024, kWide = 2560;

// Forward and backward of the projection to the vocabulary beyond those of a model of kNarrow.
double wider_head_s(const KernelModel& kernels, int microbatch, int tp) {
  const double tokens = static_cast<double>(microbatch) * kProfiledSequence,
               rows = static_cast<double>(kRows) / tp;
  return kernels.gemm_s(tokens, rows, kWide) - kernels.gemm_s(tokens, rows, kNarrow);
}

// GPT-Neo's last layer was profiled without its projection to the vocabulary. It has the same vocabulary as
// OPT, whose head was measured: add that, and what the wider model's product takes beyond it.
void add_head(ProfileSet& neo, const ProfileSet& opt, const Assumptions& assumptions) {
  for (auto& [type, profile] : neo.layers) {
    const auto other = opt.layers.find(type);
    if (other == opt.layers.end()) continue;
    const KernelModel kernels = kernel_model(assumptions.catalog.at(type), Precision::fp32);
    for (auto& [key, cell] : profile.cells) {
      const LayerProfile::Cell* measured = other->second.find(key.first, key.second);
      if (measured == nullptr) continue;
      const double more_s = wider_head_s(kernels, key.first, key.second.tp);
      cell.back().forward_s += measured->back().forward_s + more_s;
      cell.back().backward_s += measured->back().backward_s + 2 * more_s;
    }
  }
  constexpr int64_t kFloatBytes = 4, kLogitCopies = 2;
  for (auto& [shape, layers] : neo.sizes.by_shape) {
    LayerSizes& head = layers.back();
    head.activation_bytes += kLogitCopies * kFloatBytes * kProfiledSequence * (kRows / shape.parts());
    head.tied_parameters = int64_t{kRows} / shape.parts() * kWide;
    head.parameters += head.tied_parameters;
  }
}

// Messages inside a node, which the planner's copy of the profiles lacks: by type and number of GPUs, half of
// which send.
void add_links_inside(const std::string& reference, ProfileSet& set) {
  const std::string file = reference + "/network/intra_node_bandwidths.json";
  const Document document = parse_json(read_text_file(file), file);
  for (const auto& [type, by_gpus] : Field(document).entries()) {
    if (!set.layers.contains(type)) continue;
    for (const auto& [gpus, fit] : by_gpus.entries()) {
      const std::vector<Field> abc = fit.items().at(0).items();
      const int count = std::stoi(gpus);
      const LinkEnd end{type, "us-central1-a", count};
      set.network.add(
          {end, end, NetworkProfile::Scope::intra_node,
           LinkCurve::from_fit({abc.at(0).number(), abc.at(1).number(), abc.at(2).number()}, count / 2)});
    }
  }
}

}  // namespace

std::map<std::string, ProfileSet> sailor_profiles(const std::string& reference,
                                                  const Assumptions& assumptions) {
  const std::vector<std::string> types = {"GH-96", "RTX-2080", "RTX-3090", "Titan-RTX"};
  std::map<std::string, ProfileSet> sets;
  for (const char* model : {"OPT-350", "GPT-Neo-2.7"}) {
    sets[model] = load_reference_profiles(reference, model, types, ReferenceTimes::planner_copy);
    for (auto& [type, profile] : sets[model].layers) replace_disturbed_times(profile);
    add_links_inside(reference, sets[model]);
  }
  add_head(sets["GPT-Neo-2.7"], sets["OPT-350"], assumptions);
  return sets;
}

}  // namespace sailor::convert
