// The reference data pack's files, with the defects that its README lists handled by rule: a file whose layer
// count is not the model's is a wrong copy, a missing cell stays missing.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "planner/profile/profile_set.h"
#include "planner/spec/field.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

// Opens parsed files once; the second copy of the times is large and read only when needed.
class ReferenceFiles {
 public:
  explicit ReferenceFiles(std::string directory) : directory_(std::move(directory)) {}

  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  const Document& simulator_times() {
    if (!simulator_times_) {
      std::string file = path("profiles/profiles_tmp.json");
      simulator_times_ = parse_json(read_text_file(file), file);
    }
    return *simulator_times_;
  }

 private:
  std::string directory_;
  std::optional<Document> simulator_times_;
};

// A key that is a number ("4").
int key_number(const Field& field, const std::string& key, int min) {
  int value = 0;
  auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), value);
  if (error != std::errc() || end != key.data() + key.size() || value < min) {
    field.fail(fmt::format("the key {} must be an integer of at least {}", in_quotes(key), min));
  }
  return value;
}

// {"0": VALUE, "1": VALUE, ...} as a list; throws when an index is missing.
template <typename T, typename Read>
std::vector<T> read_by_layer(const Field& field, Read read) {
  std::vector<T> layers(field.node().children.size());
  std::vector<bool> seen(layers.size());
  for (const auto& [key, value] : field.entries()) {
    auto layer = static_cast<size_t>(key_number(field, key, 0));
    if (layer >= layers.size() || seen[layer]) field.fail("layers must be numbered from 0 without gaps");
    seen[layer] = true;
    layers[layer] = read(value);
  }
  return layers;
}

LayerTimes read_times(const Field& field) {
  std::vector<Field> items = field.items();
  if (items.size() != 3) field.fail("must be [FORWARD_S, BACKWARD_S, UPDATE_S]");
  return {items[0].non_negative(), items[1].non_negative(), items[2].non_negative()};
}

// One GPU type's times; nothing when any cell has another number of layers than the model.
std::optional<LayerProfile> read_layer_profile(const Field& field, const std::string& gpu_type,
                                               size_t num_layers) {
  LayerProfile profile;
  profile.gpu_type = gpu_type;
  profile.file = field.document().file;
  for (const auto& [microbatch_key, by_tp] : field.entries()) {
    int microbatch = key_number(field, microbatch_key, 1);
    for (const auto& [tp_key, by_layer] : by_tp.entries()) {
      int tp = key_number(by_tp, tp_key, 1);
      if (by_layer.is_map() && by_layer.node().children.empty()) continue;  // not profiled
      auto cell = read_by_layer<LayerTimes>(by_layer, read_times);
      if (cell.size() != num_layers) return std::nullopt;
      profile.cells.emplace(std::pair(microbatch, tp), std::move(cell));
    }
  }
  return profile;
}

std::optional<LayerProfile> planner_copy(ReferenceFiles& files, const std::string& model,
                                         const std::string& gpu_type, size_t num_layers) {
  std::string file = files.path("profiles/" + model + "/" + gpu_type + "/profile.json");
  if (!std::filesystem::exists(file)) return std::nullopt;
  Document document = parse_json(read_text_file(file), file);
  return read_layer_profile(Field(document), gpu_type, num_layers);
}

std::optional<LayerProfile> simulator_copy(ReferenceFiles& files, const std::string& model,
                                           const std::string& gpu_type, size_t num_layers) {
  const Document& document = files.simulator_times();
  const DocumentNode* by_type = document.root.find(model);
  const DocumentNode* times = by_type == nullptr ? nullptr : by_type->find(gpu_type);
  if (times == nullptr) return std::nullopt;
  return read_layer_profile(Field(document, *times), gpu_type, num_layers);
}

ModelSizes read_sizes(ReferenceFiles& files, const std::string& model) {
  std::string file = files.path("profiles/llm_info.json");
  Document document = parse_json(read_text_file(file), file);
  const DocumentNode* by_tp = document.root.find(model);
  if (by_tp == nullptr) throw InputError({file, 0}, "no model " + in_quotes(model) + " in this file");
  ModelSizes sizes;
  Field field(document, *by_tp);
  for (const auto& [tp_key, by_layer] : field.entries()) {
    int tp = key_number(field, tp_key, 1);
    sizes.by_tp[tp] = read_by_layer<LayerSizes>(by_layer, [](const Field& layer) {
      constexpr int64_t kMost = int64_t{1} << 56;
      auto count = [&](const char* key) {
        const DocumentNode* node = layer.node().find(key);
        if (node == nullptr) layer.fail(fmt::format("missing key \"{}\"", key));
        return Field(layer.document(), *node).integer<int64_t>(0, kMost);
      };
      LayerSizes one;
      one.parameters = count("params_floats");
      one.output_elements = count("act_output_floats");
      one.activation_bytes = 4 * count("act_mem_floats");
      return one;
    });
  }
  if (sizes.by_tp.empty()) field.fail("no tensor-parallel degree in this file");
  for (const auto& [tp, layers] : sizes.by_tp) {
    if (layers.size() != sizes.by_tp.begin()->second.size()) {
      field.fail(fmt::format("tp {} has {} layers, tp {} has {}", tp, layers.size(),
                             sizes.by_tp.begin()->first, sizes.by_tp.begin()->second.size()));
    }
  }
  return sizes;
}

// {send zone: {send type: {n: {receive zone: {receive type: {n: [[a, b, c], max]}}}}}}
NetworkProfile read_network(ReferenceFiles& files) {
  std::string file = files.path("network/multizone_bandwidths_het.json");
  Document document = parse_json(read_text_file(file), file);
  NetworkProfile network;
  network.file = file;
  // Calls f(end, rest) for every (zone, type, count) of three nested maps.
  auto for_each_end = [](const Field& zones, auto f) {
    for (const auto& [zone, types] : zones.entries()) {
      for (const auto& [type, counts] : types.entries()) {
        for (const auto& [count, rest] : counts.entries())
          f(LinkEnd{type, zone, key_number(counts, count, 1)}, rest);
      }
    }
  };
  for_each_end(Field(document), [&](const LinkEnd& from, const Field& receivers) {
    for_each_end(receivers, [&](const LinkEnd& to, const Field& fit) {
      std::vector<Field> parts = fit.items();
      std::vector<Field> abc;
      if (!parts.empty()) abc = parts[0].items();
      if (abc.size() != 3) fit.fail("must be [[A, B, C], MAX]");
      auto curve = LinkCurve::from_fit({abc[0].number(), abc[1].number(), abc[2].number()},
                                       std::min(from.gpus, to.gpus));
      network.add({from, to, NetworkProfile::Scope::any, std::move(curve)});
    });
  });
  return network;
}

}  // namespace

ProfileSet load_reference_profiles(const std::string& directory, const std::string& model,
                                   const std::vector<std::string>& gpu_types, ReferenceTimes times) {
  ReferenceFiles files(directory);
  ProfileSet set;
  set.sizes = read_sizes(files, model);
  size_t num_layers = set.sizes.by_tp.begin()->second.size();
  for (const std::string& type : gpu_types) {
    bool planner_first = times == ReferenceTimes::planner_copy;
    auto profile = planner_first ? planner_copy(files, model, type, num_layers)
                                 : simulator_copy(files, model, type, num_layers);
    if (!profile) {
      profile = planner_first ? simulator_copy(files, model, type, num_layers)
                              : planner_copy(files, model, type, num_layers);
      if (profile) {
        set.notes.push_back(fmt::format("type {}: {} of {} is missing or is another model's, {} is used",
                                        type, planner_first ? "profile.json" : "profiles_tmp.json", model,
                                        profile->file));
      }
    }
    if (profile) {
      set.layers.emplace(type, std::move(*profile));
    } else {
      set.notes.push_back(fmt::format("type {}: no profile of {} in {}", type, model, directory));
    }
  }
  set.network = read_network(files);
  return set;
}

}  // namespace sailor
