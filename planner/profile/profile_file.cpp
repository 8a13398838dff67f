// Layer profiles as files: reading with checks, writing.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "planner/profile/layer_profile.h"
#include "planner/profile/profile_reader.h"
#include "planner/spec/model_family.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

constexpr int kMaxTp = 4096;
constexpr int kMaxMicrobatch = 1'000'000;

LayerKind read_kind(const Field& field) {
  return static_cast<LayerKind>(field.choice(layer_kind_names()));
}

ModelSpec read_model(const Field& field) {
  std::vector<std::string> known = {"family",       "hidden",   "heads",      "kv_heads",
                                    "feed_forward", "sequence", "vocabulary", "tied_embeddings"};
  for (const ModelKey* key : profiled_keys()) known.push_back(key->name);
  MapField map(field, known);
  ModelSpec model;
  set_family(model, map.required("family").name());
  // Older files say nothing of a window where there is none.
  model.attention_window = 0;
  model.hidden = map.required("hidden").integer<int>(1, 10'000'000);
  model.heads = map.required("heads").integer<int>(1, 1'000'000);
  model.feed_forward = map.required("feed_forward").integer<int>(1, 100'000'000);
  model.sequence = map.required("sequence").integer<int>(1, 100'000'000);
  model.vocabulary = map.required("vocabulary").integer<int>(1, 100'000'000);
  if (auto heads = map.optional("kv_heads")) model.kv_heads = heads->integer<int>(1, model.heads);
  for (const ModelKey* key : profiled_keys())
    if (auto value = map.optional(key->name)) key->read(*value, model);
  if (auto tied = map.optional("tied_embeddings")) model.tied_embeddings = tied->boolean();
  return model;
}

int read_samples(const Field& field) {
  return field.integer<int>(1, 1'000'000'000);
}

ProfileFile::TimeCell read_cell_times(const Field& field) {
  MapField map(field, {"microbatch", "tp", "layer", "forward_s", "backward_s", "update_s", "light_s", "mlp_s",
                       "weight_s", "samples", "outliers", "relative_error"});
  ProfileFile::TimeCell cell;
  cell.microbatch = map.required("microbatch").integer<int>(1, kMaxMicrobatch);
  cell.shape.tp = map.required("tp").integer<int>(1, kMaxTp);
  cell.kind = read_kind(map.required("layer"));
  constexpr double kMost_s = 1e6;  // of one microbatch through one layer
  cell.times.forward_s = map.required("forward_s").positive();
  map.required("forward_s").number(0, kMost_s);
  cell.times.backward_s = map.required("backward_s").number(0, kMost_s);
  cell.times.update_s = map.required("update_s").number(0, kMost_s);
  if (auto light = map.optional("light_s")) cell.times.light_s = light->number(0, kMost_s);
  if (auto mlp = map.optional("mlp_s")) cell.times.mlp_s = mlp->number(0, kMost_s);
  if (auto weights = map.optional("weight_s")) {
    cell.times.weight_s = weights->number(0, kMost_s);
    if (cell.times.weight_s > cell.times.backward_s) weights->fail("must be a part of backward_s");
  }
  if (auto samples = map.optional("samples")) cell.samples = read_samples(*samples);
  if (auto outliers = map.optional("outliers")) cell.outliers = outliers->integer<int>(0, cell.samples);
  if (auto error = map.optional("relative_error")) cell.relative_error = error->number(0, 1e6);
  return cell;
}

ProfileFile::SizeCell read_sizes(const Field& field) {
  MapField map(field, {"tp", "layer", "parameters", "output_elements", "activation_bytes", "workspace_bytes",
                       "light_bytes", "mlp_bytes", "pending_bytes", "samples"});
  constexpr int64_t kMost = int64_t{1} << 42;  // sums over layers and microbatches stay in range
  ProfileFile::SizeCell cell;
  cell.shape.tp = map.required("tp").integer<int>(1, kMaxTp);
  cell.kind = read_kind(map.required("layer"));
  cell.sizes.parameters = map.required("parameters").integer<int64_t>(0, kMost);
  cell.sizes.output_elements = map.required("output_elements").integer<int64_t>(0, kMost);
  cell.sizes.activation_bytes = map.required("activation_bytes").integer<int64_t>(0, kMost);
  for (const auto& [key, part] :
       {std::pair("workspace_bytes", &LayerSizes::workspace_bytes),
        std::pair("light_bytes", &LayerSizes::light_bytes), std::pair("mlp_bytes", &LayerSizes::mlp_bytes),
        std::pair("pending_bytes", &LayerSizes::pending_bytes)})
    if (auto value = map.optional(key)) cell.sizes.*part = value->integer<int64_t>(0, kMost);
  if (auto samples = map.optional("samples")) cell.samples = read_samples(*samples);
  return cell;
}

void read_overheads(const Field& field, ProfileFile& profile) {
  MapField map(field, {"base_memory_bytes", "iteration_overhead_s", "sync_s_per_byte", "samples"});
  if (auto base = map.optional("base_memory_bytes")) profile.overheads.base_memory_bytes = base->bytes();
  if (auto each = map.optional("iteration_overhead_s"))
    profile.overheads.iteration_overhead_s = each->number(0, 1e6);
  if (auto each = map.optional("sync_s_per_byte")) profile.overheads.sync_s_per_byte = each->number(0, 1);
  auto samples = map.optional("samples");
  if (!samples) return;
  MapField counts(*samples, {"base_memory_bytes", "iteration_overhead_s", "sync_s_per_byte"});
  const auto read = [&counts](const char* key, int& count) {
    if (auto value = counts.optional(key)) count = read_samples(*value);
  };
  read("base_memory_bytes", profile.overhead_samples.base_memory);
  read("iteration_overhead_s", profile.overhead_samples.iteration);
  read("sync_s_per_byte", profile.overhead_samples.sync);
}

}  // namespace

ProfileFile read_profile_file(const Document& document) {
  MapField map(Field(document), {"sailor_layer_profile", "gpu_type", "model", "precision", "measured",
                                 "overheads", "times", "sizes"});
  require_version(map, "sailor_layer_profile", 1);
  ProfileFile profile;
  profile.file = document.file;
  profile.gpu_type = map.required("gpu_type").name();
  profile.model = read_model(map.required("model"));
  profile.precision = read_precision(map.required("precision"));
  if (auto measured = map.optional("measured")) profile.measured = read_measured_with(*measured);
  if (auto overheads = map.optional("overheads")) read_overheads(*overheads, profile);
  Field times = map.required("times");
  std::set<std::tuple<int, ReplicaShape, LayerKind>> seen_times;
  for (const Field& item : times.items()) {
    ProfileFile::TimeCell cell = read_cell_times(item);
    if (!seen_times.insert({cell.microbatch, cell.shape, cell.kind}).second) {
      item.fail("this (microbatch, tp, layer) is listed twice");
    }
    profile.times.push_back(cell);
  }
  if (profile.times.empty()) times.fail("a profile needs at least one measurement");
  std::set<std::tuple<ReplicaShape, LayerKind>> seen_sizes;
  for (const Field& item : map.required("sizes").items()) {
    ProfileFile::SizeCell cell = read_sizes(item);
    if (!seen_sizes.insert({cell.shape, cell.kind}).second) item.fail("this (tp, layer) is listed twice");
    profile.sizes.push_back(cell);
  }
  // A cell is of use only when all kinds of layers were measured, and their sizes are known. Local blocks are
  // in all cells, or in none of an older file.
  std::vector<LayerKind> kinds = layer_kinds(profile.model);
  const auto is_local = [](const auto& cell) { return cell.kind == LayerKind::local_block; };
  const bool local =
      std::ranges::any_of(profile.times, is_local) || std::ranges::any_of(profile.sizes, is_local);
  if (local && std::ranges::count(kinds, LayerKind::local_block) == 0)
    times.fail("local blocks of a model without attention_window");
  if (!local) std::erase(kinds, LayerKind::local_block);
  for (const ProfileFile::TimeCell& cell : profile.times) {
    for (const LayerKind kind : kinds) {
      if (!seen_times.contains({cell.microbatch, cell.shape, kind})) {
        times.fail(fmt::format("microbatch {}, tp {} has no entry for the layer \"{}\"", cell.microbatch,
                               cell.shape.tp, to_string(kind)));
      }
      if (!seen_sizes.contains({cell.shape, kind})) {
        map.required("sizes").fail(
            fmt::format("tp {} has no entry for the layer \"{}\"", cell.shape.tp, to_string(kind)));
      }
    }
  }
  return profile;
}

ProfileFile parse_profile_file(const std::string& json, const std::string& file_name) {
  return read_profile_file(parse_json(json, file_name));
}

ProfileFile load_profile_file(const std::string& path) {
  return parse_profile_file(read_text_file(path), path);
}

std::string to_json(const ProfileFile& profile) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["sailor_layer_profile"] = 1;
  json["gpu_type"] = profile.gpu_type;
  json["model"] = Json{{"family", profile.model.family},     {"hidden", profile.model.hidden},
                       {"heads", profile.model.heads},       {"feed_forward", profile.model.feed_forward},
                       {"sequence", profile.model.sequence}, {"vocabulary", profile.model.vocabulary}};
  // Only what is unlike the first transformers.
  if (profile.model.key_value_heads() != profile.model.heads)
    json["model"]["kv_heads"] = profile.model.kv_heads;
  ModelSpec usual;
  set_family(usual, profile.model.family);
  usual.attention_window = 0;
  for (const ModelKey* key : profiled_keys())
    if (!key->equal(profile.model, usual)) json["model"][key->name] = key->to_json(profile.model);
  if (profile.model.tied_embeddings) json["model"]["tied_embeddings"] = true;
  json["precision"] = to_string(profile.precision);
  json["measured"] = to_json(profile.measured);
  json["overheads"] = Json{{"base_memory_bytes", profile.overheads.base_memory_bytes},
                           {"iteration_overhead_s", profile.overheads.iteration_overhead_s},
                           {"sync_s_per_byte", profile.overheads.sync_s_per_byte}};
  Json counts = Json::object();
  for (const auto& [key, count] : {std::pair{"base_memory_bytes", profile.overhead_samples.base_memory},
                                   {"iteration_overhead_s", profile.overhead_samples.iteration},
                                   {"sync_s_per_byte", profile.overhead_samples.sync}}) {
    if (count > 0) counts[key] = count;
  }
  if (!counts.empty()) json["overheads"]["samples"] = counts;
  // One line per measurement, for human readers.
  auto lines = [](const Json& items) {
    std::string text;
    for (const Json& item : items) text += (text.empty() ? "\n    " : ",\n    ") + item.dump();
    return "[" + text + "\n  ]";
  };
  Json times = Json::array();
  for (const ProfileFile::TimeCell& cell : profile.times) {
    times.push_back({{"microbatch", cell.microbatch},
                     {"tp", cell.shape.tp},
                     {"layer", to_string(cell.kind)},
                     {"forward_s", cell.times.forward_s},
                     {"backward_s", cell.times.backward_s},
                     {"update_s", cell.times.update_s},
                     {"samples", cell.samples}});
    if (cell.times.mlp_s > 0) {
      times.back()["light_s"] = cell.times.light_s;
      times.back()["mlp_s"] = cell.times.mlp_s;
    }
    if (cell.times.weight_s > 0) times.back()["weight_s"] = cell.times.weight_s;
    if (cell.outliers > 0) times.back()["outliers"] = cell.outliers;
    if (cell.relative_error > 0) times.back()["relative_error"] = cell.relative_error;
  }
  Json sizes = Json::array();
  for (const ProfileFile::SizeCell& cell : profile.sizes) {
    sizes.push_back({{"tp", cell.shape.tp},
                     {"layer", to_string(cell.kind)},
                     {"parameters", cell.sizes.parameters},
                     {"output_elements", cell.sizes.output_elements},
                     {"activation_bytes", cell.sizes.activation_bytes},
                     {"workspace_bytes", cell.sizes.workspace_bytes},
                     {"samples", cell.samples}});
    if (cell.sizes.mlp_bytes > 0) {
      sizes.back()["light_bytes"] = cell.sizes.light_bytes;
      sizes.back()["mlp_bytes"] = cell.sizes.mlp_bytes;
    }
    if (cell.sizes.pending_bytes > 0) sizes.back()["pending_bytes"] = cell.sizes.pending_bytes;
  }
  std::string head = json.dump(2);
  head.resize(head.size() - 2);  // the closing brace and the line break before it
  return head + ",\n  \"times\": " + lines(times) + ",\n  \"sizes\": " + lines(sizes) + "\n}\n";
}

void save_profile_file(const ProfileFile& profile, const std::string& path) {
  write_file_atomically(path, to_json(profile));
}

}  // namespace sailor
