// The reference data pack's files, with the defects that its README lists handled by rule: a file whose layer
// count is not the model's is a wrong copy, a missing cell stays missing.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <optional>

#include "planner/profile/profile_set.h"
#include "planner/spec/field.h"
#include "planner/spec/json_parts.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

// The files of a data pack, of which a large part is about other models and GPU types: only what is about
// these is parsed. The second copy of the times is read only when needed, and once.
class ReferenceFiles {
 public:
  ReferenceFiles(std::string directory, std::string model, std::vector<std::string> gpu_types)
      : directory_(std::move(directory)), model_(std::move(model)), gpu_types_(std::move(gpu_types)) {}

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  bool is_asked(std::string_view gpu_type) const {
    return std::find(gpu_types_.begin(), gpu_types_.end(), gpu_type) != gpu_types_.end();
  }

  // {model: ...} without the other models.
  Document of_model(const std::string& name) const {
    return parts(
        name, [&](const JsonPath& path) { return path[0] == model_ ? JsonPart::whole : JsonPart::nothing; });
  }

  // {zone: {type: {n: {zone: {type: ...}}}}} without the other types, on either side.
  Document of_links(const std::string& name) const {
    return parts(name, [&](const JsonPath& path) {
      if ((path.size() == 2 || path.size() == 5) && !is_asked(path.back())) return JsonPart::nothing;
      return path.size() == 5 ? JsonPart::whole : JsonPart::members;
    });
  }

  const Document& simulator_times() {
    if (!simulator_times_) {
      simulator_times_ = parts("profiles/profiles_tmp.json", [&](const JsonPath& path) {
        if (path.size() == 1) return path[0] == model_ ? JsonPart::members : JsonPart::nothing;
        return is_asked(path[1]) ? JsonPart::whole : JsonPart::nothing;
      });
    }
    return *simulator_times_;
  }

 private:
  Document parts(const std::string& name, const std::function<JsonPart(const JsonPath&)>& wanted) const {
    const std::string file = path(name);
    return parse_json(keep_json_parts(read_text_file(file), wanted), file);
  }

  std::string directory_, model_;
  std::vector<std::string> gpu_types_;
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

LayerTimes read_layer_times(const Field& field) {
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
      auto cell = read_by_layer<LayerTimes>(by_layer, read_layer_times);
      if (cell.size() != num_layers) return std::nullopt;
      profile.cells.emplace(std::pair(microbatch, ReplicaShape{tp}), std::move(cell));
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
  Document document = files.of_model("profiles/llm_info.json");
  const std::string& file = document.file;
  const DocumentNode* by_tp = document.root.find(model);
  if (by_tp == nullptr) throw InputError({file, 0}, "no model " + in_quotes(model) + " in this file");
  ModelSizes sizes;
  Field field(document, *by_tp);
  for (const auto& [tp_key, by_layer] : field.entries()) {
    int tp = key_number(field, tp_key, 1);
    sizes.by_shape[{tp}] = read_by_layer<LayerSizes>(by_layer, [](const Field& layer) {
      constexpr int64_t kMost = int64_t{1} << 42;  // sums over layers and microbatches stay in range
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
    // A block that is computed again keeps what it was given.
    std::vector<LayerSizes>& layers = sizes.by_shape[{tp}];
    for (size_t layer = 1; layer + 1 < layers.size(); ++layer)
      layers[layer].checkpoint_bytes =
          std::min(layers[layer].activation_bytes, 4 * layers[layer - 1].output_elements);
  }
  if (sizes.by_shape.empty()) field.fail("no tensor-parallel degree in this file");
  for (const auto& [shape, layers] : sizes.by_shape) {
    if (layers.size() != sizes.by_shape.begin()->second.size()) {
      field.fail(fmt::format("tp {} has {} layers, tp {} has {}", shape.tp, layers.size(),
                             sizes.by_shape.begin()->first.tp, sizes.by_shape.begin()->second.size()));
    }
  }
  return sizes;
}

// {send zone: {send type: {n: {receive zone: {receive type: {n: [[a, b, c], max]}}}}}}
NetworkProfile read_network(ReferenceFiles& files) {
  Document document = files.of_links("network/multizone_bandwidths_het.json");
  NetworkProfile network;
  network.file = document.file;
  // Calls f(end, rest) for every (zone, requested type, count) of three nested maps.
  auto for_each_end = [&](const Field& zones, auto f) {
    for (const auto& [zone, types] : zones.entries()) {
      for (const auto& [type, counts] : types.entries()) {
        if (!files.is_asked(type)) continue;
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
  ReferenceFiles files(directory, model, gpu_types);
  ProfileSet set;
  set.sizes = read_sizes(files, model);
  size_t num_layers = set.sizes.by_shape.begin()->second.size();
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
