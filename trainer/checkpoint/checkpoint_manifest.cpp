#include "trainer/checkpoint/checkpoint_manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "planner/spec/error.h"
#include "planner/spec/lora_parameters.h"
#include "planner/spec/model_family.h"
#include "planner/spec/strict_json.h"
#include "planner/spec/text.h"
#include "trainer/checkpoint/block_checksums.h"
#include "trainer/checkpoint/loss_scale_json.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/spike_json.h"

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr const char* kVersionKey = "sailor_checkpoint";

Json encode(const ModelSpec& m) {
  Json json = {{"name", m.name},
               {"family", m.family},
               {"layers", m.layers},
               {"hidden", m.hidden},
               {"heads", m.heads},
               {"kv_heads", m.key_value_heads()},
               {"feed_forward", m.feed_forward},
               {"sequence", m.sequence},
               {"vocabulary", m.vocabulary},
               {"positions", m.position_rows()},
               {"tied_embeddings", m.tied_embeddings},
               {"norm_epsilon", m.norm_epsilon}};
  for (const ModelKey& key : all_model_keys()) {
    if (!json.contains(key.name)) json[key.name] = key.to_json(m);
  }
  return json;
}

ModelSpec decode_model(const StrictJson& j) {
  ModelSpec m;
  m.name = j.at("name");
  set_family(m, j.at("family"));
  m.layers = j.at("layers");
  m.hidden = j.at("hidden");
  m.heads = j.at("heads");
  m.kv_heads = j.at("kv_heads");
  m.feed_forward = j.at("feed_forward");
  m.sequence = j.at("sequence");
  m.vocabulary = j.at("vocabulary");
  m.positions = j.at("positions");
  m.tied_embeddings = j.at("tied_embeddings");
  m.norm_epsilon = j.at("norm_epsilon");
  for (const ModelKey& key : all_model_keys()) {
    // A manifest may be older than the key.
    if (j.contains(key.name)) key.from_json(Json(j.at(key.name)), m);
  }
  return m;
}

Json encode(const LoraSpec& lora, const std::string& base) {
  return {{"r", lora.r},
          {"alpha", lora.alpha},
          {"target_modules", lora.target_modules},
          {"base", base},
          {"base_digest", lora.base_digest}};
}

LoraSpec decode_lora(const StrictJson& j) {
  LoraSpec lora{.r = j.at("r"), .alpha = j.at("alpha"), .target_modules = j.at("target_modules")};
  lora.base_digest = j.at("base_digest");
  if (lora.r < 1 || !(lora.alpha > 0)) throw std::runtime_error("its adapters have no rank or no alpha");
  return lora;
}

Precision decode_precision(const std::string& text) {
  for (const PrecisionKind& kind : kPrecisions)
    if (text == kind.name) return kind.precision;
  throw std::runtime_error("precision is none that there is");
}

// Size and checksums of a file, its pieces inside of it.
std::string wrong_with(const CheckpointFile& file, const std::vector<CheckpointTensor>& tensors) {
  if (file.name.empty() || file.name.find('/') != std::string::npos) return "a file without a proper name";
  if (file.bytes < 0 || file.bytes > kMostStoredBytes) return file.name + " has an impossible size";
  const int64_t blocks = (file.bytes + kChecksumBlockBytes - 1) / kChecksumBlockBytes;
  if (static_cast<int64_t>(file.checksums.size()) != blocks * kChecksumDigits)
    return fmt::format("{} has not a checksum for every block", file.name);
  for (const CheckpointPiece& piece : file.pieces) {
    if (piece.tensor >= tensors.size()) return fmt::format("{} holds a tensor that is not listed", file.name);
    const int64_t element = stored_element_bytes(tensors[piece.tensor].dtype);
    if (piece.byte < 0 || piece.first < 0 || piece.count <= 0 || piece.byte > file.bytes ||
        piece.count > (file.bytes - piece.byte) / element)
      return fmt::format("{} lies outside of {}", tensors[piece.tensor].name, file.name);
  }
  return {};
}

}  // namespace

int64_t CheckpointTensor::elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

int64_t CheckpointManifest::bytes() const {
  int64_t sum = 0;
  for (const CheckpointFile& file : files) sum += file.bytes;
  return sum;
}

std::string incomplete(const CheckpointManifest& manifest) {
  for (const CheckpointTensor& tensor : manifest.tensors) {
    if (std::none_of(kPrecisions.begin(), kPrecisions.end(),
                     [&](const PrecisionKind& kind) { return tensor.dtype == kind.state_type; }))
      return tensor.name + " has no type of a state";
    if (stored_bytes(tensor.dtype, tensor.shape) < 0) return tensor.name + " has an impossible shape";
  }
  std::vector<CheckpointPiece> pieces;
  for (const CheckpointFile& file : manifest.files) {
    if (std::string wrong = wrong_with(file, manifest.tensors); !wrong.empty()) return wrong;
    pieces.insert(pieces.end(), file.pieces.begin(), file.pieces.end());
  }
  std::sort(pieces.begin(), pieces.end(), [](const CheckpointPiece& a, const CheckpointPiece& b) {
    return std::tie(a.tensor, a.first) < std::tie(b.tensor, b.first);
  });
  std::vector<int64_t> ends(manifest.tensors.size());
  for (const CheckpointPiece& piece : pieces) {
    int64_t& end = ends[piece.tensor];
    if (piece.first != end)
      return fmt::format("elements {} to {} of {} are stored {}", std::min(end, piece.first),
                         std::max(end, piece.first), manifest.tensors[piece.tensor].name,
                         piece.first < end ? "twice" : "nowhere");
    end += piece.count;
  }
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] != manifest.tensors[i].elements())
      return fmt::format("{} of the {} elements of {} are stored", ends[i], manifest.tensors[i].elements(),
                         manifest.tensors[i].name);
  }
  return {};
}

std::string to_json(const CheckpointManifest& manifest) {
  Json json = {{kVersionKey, kVersion},
               {"step", manifest.step},
               {"optimizer_steps", manifest.optimizer_steps},
               {"model", encode(manifest.model)},
               {"precision", to_string(manifest.precision)},
               {"optimizer", manifest.optimizer},
               {"seed", manifest.seed},
               {"global_batch", manifest.global_batch},
               {"plan", manifest.plan},
               {"checksum_block_bytes", kChecksumBlockBytes},
               {"tensors", Json::array()},
               {"files", Json::array()}};
  if (manifest.loss_scale.scale > 0) json["loss_scale"] = loss_scale_json<Json>(manifest.loss_scale);
  if (manifest.spikes != SpikeState()) json["spikes"] = spike_json<Json>(manifest.spikes);
  if (manifest.lora) json["lora"] = encode(*manifest.lora, manifest.model.from);
  for (const CheckpointTensor& tensor : manifest.tensors)
    json["tensors"].push_back({{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}});
  for (const CheckpointFile& file : manifest.files) {
    Json pieces = Json::array();
    for (const CheckpointPiece& piece : file.pieces)
      pieces.push_back({piece.tensor, piece.first, piece.count, piece.byte});
    json["files"].push_back({{"name", file.name},
                             {"bytes", file.bytes},
                             {"checksums", file.checksums},
                             {"pieces", std::move(pieces)}});
  }
  return json.dump() + "\n";
}

CheckpointManifest parse_manifest(const std::string& text, const std::string& path) {
  CheckpointManifest manifest;
  std::string wrong;
  try {
    const StrictJson json = StrictJson::parse(text);
    const int version = json.at(kVersionKey);
    if (version != kVersion)
      throw std::runtime_error(fmt::format("it has version {}, this program reads {}", version, kVersion));
    if (json.at("checksum_block_bytes") != kChecksumBlockBytes)
      throw std::runtime_error("its blocks have another size");
    manifest.step = json.at("step");
    manifest.optimizer_steps = json.at("optimizer_steps");
    if (json.contains("loss_scale")) manifest.loss_scale = loss_scale_of(json.at("loss_scale"));
    if (json.contains("spikes")) manifest.spikes = spike_state_of(json.at("spikes"));
    manifest.model = decode_model(json.at("model"));
    if (json.contains("lora")) {
      manifest.lora = decode_lora(json.at("lora"));
      manifest.model.from = json.at("lora").at("base");
    }
    manifest.precision = decode_precision(json.at("precision"));
    manifest.optimizer = json.at("optimizer");
    manifest.seed = json.at("seed");
    manifest.global_batch = json.at("global_batch");
    manifest.plan = json.at("plan");
    for (const StrictJson& tensor : json.at("tensors"))
      manifest.tensors.push_back({tensor.at("name"), tensor.at("dtype"), tensor.at("shape")});
    for (const StrictJson& entry : json.at("files")) {
      CheckpointFile file{entry.at("name"), entry.at("bytes"), entry.at("checksums"), {}};
      for (const StrictJson& piece : entry.at("pieces"))
        file.pieces.push_back({piece.at(0), piece.at(1), piece.at(2), piece.at(3)});
      manifest.files.push_back(std::move(file));
    }
    wrong = incomplete(manifest);
  } catch (const std::exception& error) {
    wrong = error.what();
  }
  if (!wrong.empty()) throw CheckpointDamaged(fmt::format("{}: {}", path, wrong));
  return manifest;
}

namespace {

Json lora_in_words(const std::optional<LoraSpec>& lora) {
  return lora ? fmt::format("adapters of rank {}", lora->r) : std::string("all parameters");
}

// The target modules, however they are written.
std::string modules_in_words(const ModelSpec& model, const LoraSpec& lora) {
  std::vector<std::string> targets = linear_modules(model);
  std::erase_if(targets, [&](const std::string& module) { return !lora.targets(module); });
  return fmt::format("{}", fmt::join(targets, ", "));
}

template <class Refuse>
void require_same_lora(const CheckpointManifest& manifest, const JobSpec& job, const Refuse& refuse) {
  const std::optional<LoraSpec>&there = manifest.lora, &here = job.training.lora;
  if (there.has_value() != here.has_value())
    refuse("training.lora", lora_in_words(there), lora_in_words(here));
  if (!here) return;
  if (there->r != here->r) refuse("training.lora.r", there->r, here->r);
  if (there->alpha != here->alpha) refuse("training.lora.alpha", there->alpha, here->alpha);
  const std::string of_there = modules_in_words(job.model, *there),
                    of_here = modules_in_words(job.model, *here);
  if (of_there != of_here) refuse("training.lora.target_modules", of_there, of_here);
  // Only rank 0 knows it.
  if (!here->base_digest.empty() && there->base_digest != here->base_digest)
    refuse("model.from", "adapters of other weights, " + manifest.model.from, job.model.from);
}

}  // namespace

void require_fit(const CheckpointManifest& manifest, const std::string& path, const JobSpec& job) {
  const auto refuse = [&](const std::string& key, const Json& there, const Json& here) {
    const auto text = [](const Json& value) {
      return value.is_string() ? in_quotes(value.get<std::string>()) : value.dump();
    };
    throw InputError(job.where(key),
                     fmt::format("{}: the checkpoint {} has {}, this job has {}; name another "
                                 "checkpoint.directory to train something else",
                                 key, path, text(there), text(here)));
  };
  require_same_lora(manifest, job, refuse);
  const Json there = encode(manifest.model), here = encode(job.model);
  for (const auto& [key, value] : there.items()) {
    // Rotary positions have no rows; where the length that the model was made for matters, so does scaling.
    const bool free = key == "name" || (key == "positions" && !job.model.learned_positions());
    if (!free && value != here.at(key)) refuse("model." + key, value, here.at(key));
  }
  if (manifest.optimizer != job.training.optimizer.name)
    refuse("training.optimizer.name", manifest.optimizer, job.training.optimizer.name);
  // Another order of the data would train on some sequences twice and never on others.
  if (manifest.global_batch != job.training.global_batch)
    refuse("training.global_batch", manifest.global_batch, job.training.global_batch);
  if (manifest.seed != job.training.seed) refuse("training.seed", manifest.seed, job.training.seed);
}

}  // namespace sailor
