// Model directories of the transformers package: the files in golden/ are what that package wrote and
// computed for weights that are made here again (tests/transformers/golden.py).
#include "trainer/checkpoint/stored_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "planner/plan/rank_layout.h"
#include "planner/spec/error.h"
#include "planner/spec/model_directory.h"
#include "planner/spec/text_file.h"
#include "tests/unit/planner/error_of.h"
#include "tests/unit/planner/scratch.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "trainer/checkpoint/export_model.h"
#include "trainer/checkpoint/stored_rows.h"
#include "trainer/model/registry.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kGolden = std::string(SAILOR_SOURCE_DIR) + "/tests/unit/trainer/checkpoint/golden/";

// The weights of golden.py.
at::Tensor golden_weight(const std::string& name, const std::vector<int64_t>& shape) {
  int64_t count = 1, phase = 0;
  for (const int64_t size : shape) count *= size;
  for (const char c : name) phase += static_cast<unsigned char>(c);
  const bool norm = shape.size() == 1 && name.size() > 7 && name.compare(name.size() - 7, 7, ".weight") == 0;
  const at::Tensor index = at::arange(1, count + 1, at::kDouble);
  const at::Tensor values = 0.3 * (0.37 * index + static_cast<double>(phase % 97)).sin() + (norm ? 1.0 : 0.0);
  return values.view(shape).to(at::kFloat);
}

struct Shards {
  int files = 1;
  std::string prefix_removed;
};

// A directory with golden/NAME/config.json and those weights.
void make_directory(const std::string& directory, const std::string& name, const Shards& shards = {}) {
  fs::create_directories(directory);
  fs::copy_file(kGolden + name + "/config.json", directory + "/config.json",
                fs::copy_options::overwrite_existing);
  const ModelSpec model = read_model_config(directory);
  std::vector<std::vector<StoredTensor>> tensors(static_cast<size_t>(shards.files));
  nlohmann::json index;
  const auto file_name = [&](size_t i) { return "part-" + std::to_string(i) + ".safetensors"; };
  std::map<std::string, std::string> original;
  size_t next = 0;
  for (const ParameterSpec& parameter : list_parameters(model, model.vocabulary)) {
    for (const std::string& stored : stored_names(parameter)) {
      std::string short_name = stored;
      if (!shards.prefix_removed.empty() && stored.find(shards.prefix_removed) == 0)
        short_name = stored.substr(shards.prefix_removed.size());
      original[short_name] = stored;
      tensors[next].push_back({short_name, "F32", stored_shape(parameter, stored)});
      index["weight_map"][short_name] = file_name(next);
      next = (next + 1) % tensors.size();
    }
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string path = directory + "/" + (shards.files == 1 ? "model.safetensors" : file_name(i));
    SafetensorsWriter writer(path, tensors[i], {{"format", "pt"}});
    for (const StoredTensor& tensor : tensors[i]) {
      const at::Tensor value = golden_weight(original.at(tensor.name), tensor.shape);
      writer.write(tensor.name, value.data_ptr(), static_cast<int64_t>(value.nbytes()));
    }
    writer.finish();
  }
  if (shards.files > 1) write_file_atomically(directory + "/model.safetensors.index.json", index.dump());
}

std::map<std::string, at::Tensor> whole_values(const ModelSpec& model, const WeightSource& weights,
                                               at::ScalarType dtype = at::kFloat) {
  LayerContext context;
  context.dtype = dtype;
  context.model = model;
  context.padded_vocabulary = model.vocabulary;
  context.weights = &weights;
  std::map<std::string, at::Tensor> values, shared;
  context.shared = &shared;
  for (int i = 0; i < model.num_all_layers(); ++i) {
    const auto layer = build_layer(context, i);
    for (const Parameter& parameter : layer->parameters()) values[parameter.name] = parameter.value.detach();
  }
  return values;
}

class Golden : public ::testing::TestWithParam<std::string> {
 protected:
  const std::string scratch_ = test::scratch_directory("models");
  const std::string directory_ = scratch_ + "/model";
};

TEST_P(Golden, LogitsLossAndGradientsAreThoseOfAnIndependentImplementation) {
  make_directory(directory_, GetParam());
  const ModelSpec model = read_model_config(directory_);
  const StoredModel weights(model);
  LayerContext context;
  context.model = model;
  context.padded_vocabulary = model.vocabulary;
  context.dtype = at::kDouble;
  context.weights = &weights;
  std::map<std::string, at::Tensor> shared;
  context.shared = &shared;

  const int64_t tokens = model.sequence;
  const at::Tensor ids = (at::arange(2 * (tokens + 1), at::kLong) * 7).remainder(19).view({2, tokens + 1});
  const Batch batch{ids.narrow(1, 0, tokens).contiguous(), ids.narrow(1, 1, tokens).contiguous()};
  std::vector<std::unique_ptr<Layer>> layers;
  at::Tensor x;
  for (int i = 0; i <= model.layers; ++i) {
    layers.push_back(build_layer(context, i));
    x = layers.back()->forward(x, batch);
  }
  layers.push_back(build_layer(context, model.layers + 1));
  const at::Tensor logits = layers.back()->logits(x).detach();
  const at::Tensor loss = layers.back()->forward(x, batch) / static_cast<double>(2 * tokens);
  torch::autograd::backward({loss}, {});

  const auto expected = nlohmann::json::parse(read_text_file(kGolden + GetParam() + "/expected.json"));
  const at::Tensor their_logits = at::tensor(expected["logits"].get<std::vector<double>>(), at::kDouble);
  EXPECT_LE((logits.reshape({-1}) - their_logits).abs().max().item<double>(),
            1e-5 * their_logits.abs().max().item<double>());
  EXPECT_NEAR(loss.item<double>(), expected["loss"].get<double>(), 1e-5 * expected["loss"].get<double>());

  std::map<std::string, at::Tensor> ours;
  std::map<std::string, ParameterSpec> specs;
  for (const ParameterSpec& spec : list_parameters(model, model.vocabulary)) specs[spec.name] = spec;
  for (const auto& layer : layers) {
    for (const Parameter& parameter : layer->parameters()) {
      for (const auto& [name, gradient] : stored_tensors(specs.at(parameter.name), parameter.value.grad()))
        EXPECT_TRUE(ours.emplace(name, gradient.to(at::kDouble).reshape({-1})).second) << name;
    }
  }
  const auto& gradients = expected["gradients"];
  ASSERT_EQ(ours.size(), gradients.size());
  double largest = 0;
  for (const auto& entry : ours) largest = std::max(largest, entry.second.abs().max().item<double>());
  for (const auto& [name, gradient] : ours) {
    ASSERT_TRUE(gradients.contains(name)) << name;
    const double norm = gradient.norm().item<double>();
    const at::Tensor mix = (0.11 * at::arange(1, gradient.numel() + 1, at::kDouble)).cos();
    const double scale = std::max(norm, 1e-3 * largest);
    EXPECT_NEAR(norm, gradients[name][0].get<double>(), 1e-5 * scale) << name;
    EXPECT_NEAR((gradient * mix).sum().item<double>(), gradients[name][1].get<double>(),
                1e-5 * scale * std::sqrt(static_cast<double>(gradient.numel())))
        << name;
  }
}

TEST_P(Golden, ShardsAndNamesWithoutPrefixAreTheSameModel) {
  make_directory(directory_, GetParam());
  const ModelSpec model = read_model_config(directory_);
  const auto expected = whole_values(model, StoredModel(model));
  const std::string other = scratch_ + "/sharded";
  make_directory(other, GetParam(), {.files = 3, .prefix_removed = model_family(model.family).stored_prefix});
  ModelSpec sharded = model;
  sharded.from = other;
  for (const auto& [name, value] : whole_values(sharded, StoredModel(sharded)))
    EXPECT_TRUE(at::equal(value, expected.at(name))) << name;
}

TEST_P(Golden, ExportingWhatWasReadGivesTheSameBytes) {
  make_directory(directory_, GetParam());
  const ModelSpec model = read_model_config(directory_);
  const auto values = whole_values(model, StoredModel(model));
  const std::string out = scratch_ + "/out";
  export_model(out, model, at::kFloat, [&](const ParameterSpec& spec) { return values.at(spec.name); });

  ModelSpec again = read_model_config(out);
  EXPECT_EQ(again.from, out);
  again.from = model.from;
  EXPECT_EQ(to_model_config(again, "float32"), to_model_config(model, "float32"));
  const SafetensorsFile before(directory_ + "/model.safetensors"), after(out + "/model.safetensors");
  ASSERT_EQ(before.tensors().size(), after.tensors().size());
  for (const StoredTensor& tensor : before.tensors()) {
    const StoredTensor* same = after.find(tensor.name);
    ASSERT_NE(same, nullptr) << tensor.name;
    EXPECT_EQ(same->shape, tensor.shape);
    std::string a(static_cast<size_t>(tensor.bytes), '\0'), b(static_cast<size_t>(same->bytes), '\1');
    before.read(tensor, 0, tensor.bytes, a.data());
    after.read(*same, 0, same->bytes, b.data());
    EXPECT_EQ(a, b) << tensor.name;
  }
}

// Layouts with mixed degrees, stages and padding: every rank has its rows, and the loss is that of one rank.
TEST_P(Golden, AnyPlanLoadsItsRows) {
  make_directory(directory_, GetParam());
  JobSpec job;
  job.model = read_model_config(directory_);
  job.model.name = "golden";
  job.training.global_batch = 4;
  job.training.precision = Precision::fp64;  // in fp32 rounding moves weights with small gradients
  job.training.optimizer.epsilon = 1e-3;
  job.training.optimizer.lr = 0.01;
  std::map<std::string, at::Tensor> trained,
      whole = whole_values(job.model, StoredModel(job.model), at::kDouble);
  std::vector<uint16_t> tokens;
  for (int i = 0; i < 400; ++i) tokens.push_back(static_cast<uint16_t>(i * i % 19));
  const TokenData data = TokenData::from_tokens(tokens, job.model.sequence, 4, 19, 1);

  const auto loss_of = [&](const std::vector<std::vector<int>>& layout, int steps = 1,
                           const std::string& out = "") {
    Plan plan;
    plan.model = "golden";
    plan.global_batch = 4;
    plan.microbatch = 1;
    for (const std::vector<int>& degrees : layout) {
      PlanPipeline pipeline;
      pipeline.microbatches = 4 / static_cast<int>(layout.size());
      const int stages = static_cast<int>(degrees.size());
      for (int s = 0; s < stages; ++s) {
        PlanStage stage;
        stage.first_layer = job.model.num_all_layers() * s / stages;
        stage.end_layer = job.model.num_all_layers() * (s + 1) / stages;
        stage.shape.tp = degrees[static_cast<size_t>(s)];
        pipeline.stages.push_back(stage);
      }
      plan.pipelines.push_back(pipeline);
    }
    double loss = 0, norm = 0;
    TestJob ranks("thread", num_ranks(plan));
    const RankLayout slots(plan);
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job, plan, factory.rank(), factory, data);
      const RankSlot& slot = slots.slots()[static_cast<size_t>(factory.rank())];
      for (const Parameter* parameter : trainer.parameters()) {
        const at::Tensor& all = whole.at(parameter->name);
        const int64_t rows = parameter->value.size(0), first = parameter->sharded ? slot.tp_rank * rows : 0;
        const int64_t real = std::clamp<int64_t>(all.size(0) - first, 0, rows);
        EXPECT_TRUE(at::equal(parameter->value.detach().narrow(0, 0, real), all.narrow(0, first, real)))
            << parameter->name;
        EXPECT_EQ(parameter->value.detach().narrow(0, real, rows - real).abs().sum().item<double>(), 0.0);
      }
      if (out.empty()) trainer.set_next_step(steps - 1);
      StepResult result;
      for (int step = out.empty() ? steps - 1 : 0; step < steps; ++step) result = trainer.step();
      if (!out.empty()) trainer.export_to(out);
      if (factory.rank() == 0) {
        loss = result.loss;
        norm = result.grad_norm;
      }
    });
    return std::pair(loss, norm);
  };
  const auto alone = loss_of({{1}});
  const bool one_kv_head = job.model.key_value_heads() == 1;  // no TP group can split it
  for (const auto& layout :
       std::vector<std::vector<std::vector<int>>>{{{1, 1}}, {{2}}, {{2, 1}, {1, 2}}, {{1, 1, 1}, {1}}}) {
    if (one_kv_head && (layout[0][0] == 2)) {
      EXPECT_THROW(loss_of(layout), InputError);
      continue;
    }
    const auto split = loss_of(layout);
    EXPECT_NEAR(split.first, alone.first, 1e-9 * alone.first);
    EXPECT_NEAR(split.second, alone.second, 1e-9 * alone.second);
  }

  // Two steps under one plan, exported, and the third under another: the third step of one rank.
  if (one_kv_head) return;
  const std::string out = scratch_ + "/trained", single = scratch_ + "/single";
  loss_of({{1, 2}, {2}}, 2, out);
  loss_of({{1}}, 2, single);
  const auto losses_from = [&](const std::string& directory) {
    job.model = read_model_config(directory);
    job.model.name = "golden";
    trained = whole_values(job.model, StoredModel(job.model), at::kDouble);
    whole = trained;
    return std::pair(loss_of({{2, 1}}, 3).first, trained);
  };
  const auto ours = losses_from(out), expected = losses_from(single);
  EXPECT_NEAR(ours.first, expected.first, 1e-9 * expected.first);
  EXPECT_GT(std::abs(ours.first - alone.first), 1e-3) << "two steps change the model";
  for (const auto& [name, value] : expected.second)
    EXPECT_TRUE(at::allclose(ours.second.at(name), value, 1e-9, 1e-9)) << name;
}

// A directory each in golden/.
std::vector<std::string> golden_models() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kGolden)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, ::testing::ValuesIn(golden_models()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(GoldenModels, EveryFamilyHasOne) {
  std::set<std::string> families;
  for (const std::string& name : golden_models()) families.insert(read_model_config(kGolden + name).family);
  for (const ModelFamily& family : model_families())
    EXPECT_TRUE(families.contains(family.name)) << family.name;
}

class BrokenModel : public ::testing::Test {
 protected:
  void SetUp() override { make_directory(directory_, "llama"); }
  std::string error() {
    return test::error_of([this] { StoredModel{read_model_config(directory_)}; });
  }
  // Replaces text in config.json.
  void change(const std::string& from, const std::string& to) {
    std::string text = read_text_file(directory_ + "/config.json");
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write_file_atomically(directory_ + "/config.json", text.replace(at, from.size(), to));
  }

  const std::string scratch_ = test::scratch_directory("models");
  const std::string directory_ = scratch_ + "/model";
};

TEST_F(BrokenModel, EveryErrorSaysWhereAndWhat) {
  EXPECT_EQ(error(), "no error");
  change("\"silu\"", "\"gelu\"");
  EXPECT_THAT(error(), HasSubstr("config.json:10: hidden_act: must be silu or swish for this family"));
  change("\"gelu\"", "\"silu\"");
  change("\"intermediate_size\": 20", "\"intermediate_size\": 24");
  EXPECT_THAT(error(), HasSubstr("has shape [20, 16], config.json makes it [24, 16]"));
  change("\"intermediate_size\": 24", "\"intermediate_size\": 20");
  change("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
  EXPECT_THAT(error(), HasSubstr("tensor \"model.layers.2."));
  change("\"num_hidden_layers\": 3", "\"num_hidden_layers\": 1");
  EXPECT_THAT(error(), HasSubstr("\"model.layers.1."));
  change("\"num_hidden_layers\": 1", "\"num_hidden_layers\": 2");
  change("\"rope_type\": \"default\"", "\"rope_type\": \"linear\"");
  EXPECT_THAT(error(), HasSubstr("rope_parameters: missing key \"factor\""));
  change("\"rope_type\": \"linear\"", "\"rope_type\": \"longrope\"");
  EXPECT_THAT(error(),
              HasSubstr("rope_parameters.rope_type: must be default, linear, dynamic, llama3 or yarn"));
  change("\"rope_type\": \"longrope\"", "\"rope_type\": \"default\"");
  change("\"model_type\": \"llama\"", "\"model_type\": \"mamba\"");
  EXPECT_THAT(error(), HasSubstr("model_type: must be gpt2, opt, gpt_neo"));
  change("\"model_type\": \"mamba\"", "\"model_type\": \"llama\"");
  fs::remove(directory_ + "/model.safetensors");
  EXPECT_THAT(error(), HasSubstr("neither model.safetensors nor model.safetensors.index.json"));
  write_file_atomically(directory_ + "/model.safetensors.index.json",
                        R"({"weight_map": {"a": "../x.safetensors"}})");
  EXPECT_THAT(error(), HasSubstr("weight_map.a: must be the name of a file in the same directory"));
  fs::remove(directory_ + "/config.json");
  EXPECT_THAT(error(), HasSubstr("config.json"));
  EXPECT_THAT(test::error_of([] { read_model_config("/nowhere"); }),
              HasSubstr("/nowhere is not a directory"));
}

TEST_F(BrokenModel, AnIndexThatPointsToTheWrongFileIsRefused) {
  fs::remove_all(directory_);
  make_directory(directory_, "llama", {.files = 2, .prefix_removed = ""});
  EXPECT_EQ(error(), "no error");
  std::string index = read_text_file(directory_ + "/model.safetensors.index.json");
  const size_t at = index.find("part-0");
  index.replace(at, 6, "part-1");
  write_file_atomically(directory_ + "/model.safetensors.index.json", index);
  EXPECT_THAT(error(), HasSubstr("the files are of different models"));
}

}  // namespace
}  // namespace sailor
