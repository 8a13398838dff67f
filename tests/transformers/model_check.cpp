// model_check DIRECTORY SEED: is what the trainer computes from a model directory what
// DIRECTORY/expected.safetensors says (logits, loss and gradients of an independent implementation)? One CSV
// row, exit 1 when not. `--families` prints the names of all families. Also writes DIRECTORY/export, the same
// model exported, for the other side to load, and with adapters DIRECTORY/adapter and DIRECTORY/merged
// (adapter_check.h).
//
// Tolerances as for `equality`: max|a-b| <= 1e-5 max(max|b|, 1e-3 largest gradient of the model).
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "planner/spec/error.h"
#include "planner/spec/model_directory.h"
#include "planner/spec/model_family.h"
#include "tests/transformers/adapter_check.h"
#include "trainer/checkpoint/export_model.h"
#include "trainer/checkpoint/stored_model.h"
#include "trainer/checkpoint/stored_rows.h"

namespace sailor {
namespace {

constexpr double kTolerance = 1e-5;

at::Tensor read_whole(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor* tensor = file.find(name);
  if (tensor == nullptr) throw InputError({file.path(), 0}, "there is no tensor \"" + name + "\"");
  at::Tensor value = at::empty(
      tensor->shape, tensor->dtype == "I64" ? at::kLong : stored_scalar_type(tensor->dtype, file.path()));
  file.read(*tensor, 0, tensor->bytes, value.data_ptr());
  return value;
}

double largest(const at::Tensor& x) {
  return x.abs().max().item<double>();
}

// NaN counts as infinitely wrong.
double worse(double a, double b) {
  return std::isnan(b) ? INFINITY : std::max(a, b);
}

int check(const std::string& directory, uint64_t seed) {
  const SafetensorsFile expected(directory + "/expected.safetensors");
  const at::Tensor ids = read_whole(expected, "ids");
  ModelSpec model = read_model_config(directory);
  model.sequence = static_cast<int>(ids.size(1)) - 1;  // dynamically scaled rotary embeddings depend on it
  const StoredModel weights(model);
  const at::Tensor their_logits = read_whole(expected, "logits"), their_loss = read_whole(expected, "loss");

  double logit_err = 0, loss_err = 0;
  Computed ours;
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    ours = compute(model, weights, std::nullopt, ids, dtype);
    logit_err = worse(logit_err, largest(ours.logits - their_logits) / largest(their_logits));
    loss_err = worse(loss_err, largest(ours.loss.detach() - their_loss) / largest(their_loss));
  }
  // Gradients in double precision: some are zero but for rounding.
  std::map<std::string, std::pair<at::Tensor, at::Tensor>> pairs;  // ours, theirs
  double largest_gradient = 0;
  for (const ParameterSpec& spec : list_parameters(model, model.vocabulary)) {
    for (const auto& [name, gradient] : stored_tensors(spec, ours.gradients.at(spec.name))) {
      pairs[name] = {gradient, read_whole(expected, "gradient." + name)};
      largest_gradient = std::max(largest_gradient, largest(pairs[name].second));
    }
  }
  double gradient_err = 0;
  std::string worst;
  for (const auto& [name, pair] : pairs) {
    const double error =
        largest(pair.first - pair.second) / std::max(largest(pair.second), 1e-3 * largest_gradient);
    if (!(error <= gradient_err)) worst = name;
    gradient_err = worse(gradient_err, error);
  }
  // Every tensor of theirs was compared: ids, logits, loss and one gradient each.
  const bool all = pairs.size() + 3 == expected.tensors().size();
  export_model(directory + "/export", model, at::kFloat,
               [&](const ParameterSpec& spec) { return ours.values.at(spec.name); });
  write_adapters(directory, model, weights, ids, seed);
  const bool ok = all && logit_err <= kTolerance && loss_err <= kTolerance && gradient_err <= kTolerance;
  fmt::print("{},{},{:.2e},{:.2e},{:.2e},{},{}\n", directory, model.family, logit_err, loss_err, gradient_err,
             worst, ok ? "yes" : "no");
  return ok ? kDone : kFailed;
}

}  // namespace
}  // namespace sailor

int main(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string("--families")) {
    for (const sailor::ModelFamily& family : sailor::model_families()) fmt::print("{}\n", family.name);
    return sailor::kDone;
  }
  if (argc != 3) {
    std::fprintf(stderr, "usage: model_check DIRECTORY SEED | --families\n");
    return sailor::kBadInput;
  }
  at::set_num_threads(1);
  try {
    return sailor::check(argv[1], std::stoull(argv[2]));
  } catch (const sailor::InputError& error) {
    std::fprintf(stderr, "sailor: %s\n", error.what());
    return sailor::kBadInput;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sailor: %s\n", error.what());
    return sailor::kFailed;
  }
}
