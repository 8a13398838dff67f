#include "planner/spec/job_spec.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <limits>

#include "planner/spec/error.h"
#include "planner/spec/overrides.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"
#include "tests/unit/planner/error_of.h"
#include "tests/unit/planner/scratch.h"

namespace sailor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char kJob[] = R"(#!/usr/bin/env -S sailor run
#SBATCH --job-name=test
model: {family: gpt, layers: 4, hidden: 64, heads: 4, sequence: 128, vocabulary: 256}
training:
  global_batch: 16
  steps: 10
  optimizer: {name: adamw, lr: 3.0e-4}
data: {train: text.bin, format: nanogpt}
resources: {max_gpus: {big: 4}, zones: [z1]}
constraints: {max_usd_per_iteration: 1.2 USD}
checkpoint: {directory: /tmp/c, every_steps: 5}
elastic: {enabled: true}
)";

std::string with(std::string from, const std::string& to) {
  std::string text = kJob;
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& yaml) {
  try {
    parse_job_spec(yaml, "job.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(JobSpec, ABatchScriptIsAJobSpec) {
  JobSpec job = parse_job_spec(kJob, "job.yaml");
  EXPECT_EQ(job.model.name, "gpt-4x64");
  EXPECT_EQ(job.model.feed_forward, 256);
  EXPECT_EQ(job.model.num_all_layers(), 6);
  EXPECT_EQ(job.training.global_batch, 16);
  EXPECT_EQ(job.training.precision, Precision::fp32);
  EXPECT_DOUBLE_EQ(job.training.optimizer.lr, 3e-4);
  EXPECT_EQ(job.resources.max_gpus.at("big"), 4);
  EXPECT_THAT(job.resources.zones, ElementsAre("z1"));
  EXPECT_DOUBLE_EQ(*job.constraints.most[Expense::cost], 1.2);
  EXPECT_EQ(job.checkpoint.keep, 3);
  EXPECT_TRUE(job.elastic.enabled);
  EXPECT_EQ(job.checkpoint.memory_copies, MemoryCopies::neighbour);
  EXPECT_FALSE(job.objective_given);
  EXPECT_EQ(job.where("resources.max_gpus.big").text(), "job.yaml:9");
  EXPECT_EQ(job.where("resources.zones[0]").text(), "job.yaml:9");
}

TEST(JobSpec, AnElasticJobSaysHowLongItWaits) {
  const auto elastic = [](const std::string& inner) {
    return parse_job_spec(with("elastic: {enabled: true}", "elastic: {enabled: true" + inner + "}"),
                          "job.yaml")
        .elastic;
  };
  EXPECT_DOUBLE_EQ(elastic("").wait_s, 600);
  EXPECT_DOUBLE_EQ(elastic("").lease_s, 5);
  EXPECT_DOUBLE_EQ(elastic(", wait: 2h, lease: 10s").wait_s, 7200);
  EXPECT_DOUBLE_EQ(elastic(", wait: 2h, lease: 10s").lease_s, 10);
  EXPECT_THAT(error_of(with("elastic: {enabled: true}", "elastic: {enabled: true, lease: 100ms}")),
              HasSubstr("elastic.lease: must be between 2s and 1h"));
  EXPECT_DOUBLE_EQ(elastic("").grow_every_s, 60);
  EXPECT_DOUBLE_EQ(elastic(", grow_every: 5min").grow_every_s, 300);
  EXPECT_DOUBLE_EQ(elastic(", grow_every: 0").grow_every_s, 0);
  EXPECT_THAT(error_of(with("elastic: {enabled: true}", "elastic: {enabled: true, grow_every: 100ms}")),
              HasSubstr("elastic.grow_every: must be 0"));
  EXPECT_THAT(error_of(with("elastic: {enabled: true}", "elastic: {enabled: true, wiat: 2h}")),
              HasSubstr("wait"));
}

TEST(JobSpec, CopiesInMemoryFollowElasticityUnlessTheyAreNamed) {
  const auto copies = [](const std::string& yaml) {
    return parse_job_spec(yaml, "job.yaml").checkpoint.memory_copies;
  };
  EXPECT_EQ(copies(with("enabled: true", "enabled: false")), MemoryCopies::own);
  EXPECT_EQ(copies(with("every_steps: 5", "memory_copies: none")), MemoryCopies::none);
  EXPECT_THAT(error_of(with("every_steps: 5", "memory_copies: all")), HasSubstr("checkpoint.memory_copies"));
}

TEST(JobSpec, UnknownKeysNameTheNearestKnownOne) {
  EXPECT_EQ(error_of(with("layers:", "layerz:")),
            "job.yaml:3: model: unknown key \"layerz\", did you mean \"layers\"?");
  EXPECT_THAT(error_of(with("elastic:", "xyzzyx:")),
              HasSubstr("unknown key \"xyzzyx\" (known: model, training"));
}

TEST(JobSpec, EveryErrorNamesLineAndKey) {
  EXPECT_EQ(error_of(with("layers: 4", "layers: 10000")),
            "job.yaml:3: model.layers: must be an integer from 1 to 1024, is \"10000\"");
  EXPECT_EQ(error_of(with("global_batch: 16", "global_batch: -1")),
            "job.yaml:5: training.global_batch: must be an integer from 1 to 1000000000, is \"-1\"");
  EXPECT_EQ(error_of(with("global_batch: 16", "global_batch: many")),
            "job.yaml:5: training.global_batch: must be an integer from 1 to 1000000000, is \"many\"");
  EXPECT_EQ(error_of(with("  steps: 10\n", "")), "job.yaml:5: training: missing key \"steps\"");
  EXPECT_THAT(error_of(with("steps: 10", "steps: 99999999999999999999999")),
              HasSubstr("job.yaml:6: training.steps: the number"));
  EXPECT_THAT(error_of(with("3.0e-4", ".nan")), HasSubstr("training.optimizer.lr: must be a finite number"));
  EXPECT_THAT(error_of(with("3.0e-4", ".inf")), HasSubstr("training.optimizer.lr: must be a finite number"));
  EXPECT_THAT(error_of(with("heads: 4", "heads: 5")),
              HasSubstr("hidden (64) must be a multiple of heads (5)"));
  EXPECT_THAT(error_of(with("name: adamw", "name: adamv")), HasSubstr("did you mean \"adamw\"?"));
  EXPECT_THAT(error_of(with("{enabled: true}", "{enabled: \"true\"}")), HasSubstr("must be true or false"));
  EXPECT_THAT(error_of(with("zones: [z1]", "zones: z1")), HasSubstr("resources.zones: must be a list"));
  EXPECT_THAT(error_of(with("{big: 4}", "{big: 4.5}")),
              HasSubstr("resources.max_gpus.big: must be an integer"));
  EXPECT_THAT(error_of(with("family: gpt", "from: /models/x, family: gpt")),
              HasSubstr("model.family: the model directory of model.from sets this already"));
  EXPECT_THAT(error_of("just text\n"), HasSubstr("job.yaml:1: must be a map"));
}

TEST(JobSpec, FamiliesHaveKeysOfTheirOwn) {
  const ModelSpec grouped =
      parse_job_spec(
          with("family: gpt,", "family: llama, kv_heads: 2, rotary_base: 5e5, norm_epsilon: 1e-6,"),
          "job.yaml")
          .model;
  EXPECT_EQ(grouped.key_value_heads(), 2);
  EXPECT_EQ(grouped.rotary_base, 5e5);
  EXPECT_EQ(grouped.norm_epsilon, 1e-6);
  EXPECT_TRUE(grouped.splits_over({2}));
  EXPECT_FALSE(grouped.splits_over({4}));
  // Two heads of keys and values: over more groups the tokens are split.
  EXPECT_EQ(grouped.ring_degree({.tp = 1, .cp = 2}), 1);
  EXPECT_EQ(grouped.ring_degree({.tp = 2, .cp = 2}), 2);
  EXPECT_EQ(grouped.ring_degree({.tp = 1, .cp = 3}), 3);
  EXPECT_EQ(grouped.ring_degree({.tp = 1, .cp = 4}), 2);
  ModelSpec one_norm = grouped;
  one_norm.qk_norm = QkNorm::projection;
  EXPECT_EQ(one_norm.ring_degree({.tp = 1, .cp = 2}), 2);
  const ModelSpec local = parse_job_spec(with("family: gpt,", "family: gpt-neo,"), "job.yaml").model;
  EXPECT_EQ(local.attention_window, 256);
  EXPECT_FALSE(local.tied_embeddings);
  const ModelSpec longer =
      parse_job_spec(with("family: gpt,", "family: opt, positions: 200, tied_embeddings: true,"), "job.yaml")
          .model;
  EXPECT_EQ(longer.position_rows(), 200);
  EXPECT_TRUE(longer.tied_embeddings);

  EXPECT_EQ(longer.dropout, 0);
  EXPECT_EQ(parse_job_spec(with("family: gpt,", "family: opt, dropout: 0.1,"), "job.yaml").model.dropout,
            0.1);
  EXPECT_THAT(error_of(with("family: gpt,", "family: opt, dropout: 1,")),
              HasSubstr("model.dropout: must be below 1"));

  EXPECT_EQ(error_of(with("family: gpt,", "family: gpt2, kv_heads: 2,")),
            "job.yaml:3: model.kv_heads: models of family \"gpt2\" have no such thing, leave the key out");
  EXPECT_THAT(error_of(with("family: gpt,", "family: llama, kv_heads: 3,")),
              HasSubstr("heads (4) must be a multiple of kv_heads (3)"));
  EXPECT_THAT(error_of(with("family: gpt,", "family: llama, positions: 200,")),
              HasSubstr("model.positions: models of family \"llama\" have no such thing"));
  EXPECT_THAT(error_of(with("family: gpt,", "family: opt, positions: 100,")),
              HasSubstr("model.positions: positions (100) must be at least sequence (128)"));
  EXPECT_THAT(error_of(with("family: gpt,", "family: llama, norm_epsilon: 0,")),
              HasSubstr("must be above 0"));
}

TEST(JobSpec, AModelDirectoryGivesTheShape) {
  const std::string directory = test::scratch_directory("job-from");
  std::filesystem::create_directories(directory + "/models/m");
  write_file_atomically(directory + "/models/m/config.json",
                        R"({"model_type": "opt", "vocab_size": 100, "hidden_size": 64, "ffn_dim": 256,
                            "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 128,
                            "word_embed_proj_dim": 64, "dropout": 0.1})");
  const std::string shape = "family: gpt, layers: 4, hidden: 64, heads: 4, sequence: 128, vocabulary: 256";
  const auto model = [&](const std::string& keys) {
    return parse_job_spec(with(shape, keys), directory + "/job.yaml").model;
  };
  const ModelSpec read = model("from: models/m");
  EXPECT_EQ(read.family, "opt");
  EXPECT_EQ(read.name, "opt-3x64");
  EXPECT_EQ(read.from, directory + "/models/m");
  EXPECT_EQ(read.sequence, 128);
  EXPECT_TRUE(read.tied_embeddings);
  const ModelSpec shorter = model("from: models/m, sequence: 32, name: mine, dropout: 0.2");
  EXPECT_EQ(shorter.sequence, 32);
  EXPECT_EQ(shorter.position_rows(), 128);
  EXPECT_EQ(shorter.name, "mine");
  EXPECT_EQ(shorter.dropout, 0.2);
  EXPECT_EQ(parse_job_spec(with(shape, "from: models/m"), "/elsewhere/job.yaml", directory).model.from,
            directory + "/models/m");
  const auto error = [&](const std::string& keys) { return test::error_of([&] { model(keys); }); };
  EXPECT_THAT(error("from: models/n"), HasSubstr("job.yaml:3: model.from: "));
  EXPECT_THAT(error("from: models/n"), HasSubstr("is not a directory"));
  EXPECT_THAT(error("from: models/m, sequence: 200"),
              HasSubstr("model.sequence: must be an integer from 1 to 128"));
  write_file_atomically(directory + "/models/m/config.json",
                        R"({"model_type": "opt", "vocab_size": 100, "hidden_size": 64, "ffn_dim": 256,
                            "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 128,
                            "do_layer_norm_before": false})");
  EXPECT_THAT(
      error("from: models/m"),
      HasSubstr("config.json:3: do_layer_norm_before: the trainer has do_layer_norm_before = true only"));
}

TEST(JobSpec, TrainingDataIsOneSourceOrABlend) {
  auto data = [](const std::string& train) { return with("{train: text.bin, ", "{train: " + train + ", "); };
  EXPECT_EQ(parse_job_spec(kJob, "job.yaml").data.train, std::vector<DataSource>({{"text.bin", 1}}));
  EXPECT_EQ(parse_job_spec(data("[{files: a.bin, weight: 7}, {files: 'b*.bin', weight: 0.5}]"), "job.yaml")
                .data.train,
            std::vector<DataSource>({{"a.bin", 7}, {"b*.bin", 0.5}}));
  EXPECT_THAT(error_of(data("[]")), HasSubstr("data.train: names no files"));
  EXPECT_THAT(error_of(data("[{files: a.bin}]")), HasSubstr("data.train[0]"));
  EXPECT_THAT(error_of(data("[{files: a.bin, weight: 0}]")),
              HasSubstr("data.train[0].weight: must be a number above 0"));
  EXPECT_THAT(error_of(data("[{files: a.bin, weight: 1, format: llmc}]")),
              HasSubstr("unknown key \"format\""));
  EXPECT_THAT(error_of(data("[a.bin, b.bin]")), HasSubstr("data.train[0]"));
}

TEST(JobSpec, TrainingSettingsHaveTheUsualNamesAndDefaults) {
  const JobSpec plain = parse_job_spec(kJob, "job.yaml");
  EXPECT_EQ(plain.training.schedule.name, "constant");
  EXPECT_FALSE(plain.training.clip_grad_norm.has_value());
  EXPECT_EQ(plain.metrics.trace_step, 0);
  EXPECT_EQ(parse_job_spec(with(", format: nanogpt", ""), "job.yaml").data.format, "auto");
  const JobSpec job =
      parse_job_spec(with("  optimizer: {name: adamw, lr: 3.0e-4}\ndata: {train: text.bin, format: nanogpt}",
                          "  optimizer: {name: sgd, lr: 0.1, momentum: 0.9, nesterov: true}\n"
                          "  schedule: {name: cosine, warmup_steps: 2, min_lr: 0.01}\n"
                          "  clip_grad_norm: 1.0\n"
                          "  validation: {every_steps: 5, sequences: 7}\n"
                          "data: {train: text.bin, format: mosaicml, column: ids, token_encoding_type: "
                          "uint32, validation: val.bin, "
                          "document_mask: true}\n"
                          "metrics: {tensorboard: tb, trace_step: 3}"),
                     "job.yaml");
  EXPECT_TRUE(job.training.optimizer.nesterov);
  EXPECT_EQ(job.training.optimizer.momentum, 0.9);
  EXPECT_EQ(job.training.schedule.name, "cosine");
  EXPECT_EQ(job.training.schedule.warmup_steps, 2);
  EXPECT_EQ(job.training.schedule.min_lr, 0.01);
  EXPECT_EQ(job.training.clip_grad_norm, 1.0);
  EXPECT_EQ(job.training.validation.sequences, 7);
  EXPECT_EQ(job.data.format, "mosaicml");
  EXPECT_EQ(job.data.column, "ids");
  EXPECT_EQ(job.data.token_encoding_type, "uint32");
  EXPECT_TRUE(job.data.document_mask);
  EXPECT_EQ(job.training.task, Task::pretraining);
  EXPECT_EQ(
      parse_job_spec(with("  optimizer: {name: adamw", "  task: sft\n  optimizer: {name: adamw"), "job.yaml")
          .training.task,
      Task::sft);
  EXPECT_EQ(job.metrics.tensorboard, "tb");
  EXPECT_EQ(job.metrics.trace_step, 3);
}

TEST(JobSpec, MuonHasMomentumAndWhatAdamWHasForTheRest) {
  const auto optimizer = [](const std::string& keys) {
    return parse_job_spec(
               with("  optimizer: {name: adamw, lr: 3.0e-4}", "  optimizer: {name: muon" + keys + "}"),
               "job.yaml")
        .training.optimizer;
  };
  EXPECT_EQ(optimizer("").momentum, 0.95);
  EXPECT_TRUE(optimizer("").nesterov);
  const OptimizerSpec given = optimizer(", momentum: 0, nesterov: false, beta2: 0.95, epsilon: 1.0e-6");
  EXPECT_EQ(given.momentum, 0);
  EXPECT_FALSE(given.nesterov);
  EXPECT_EQ(given.beta2, 0.95);
  EXPECT_EQ(given.epsilon, 1e-6);
}

// A setting that would change nothing, or nothing that anybody wants, is an error.
TEST(JobSpec, TrainingSettingsThatDoNotFitEachOtherAreRefused) {
  const auto training = [](const std::string& keys) {
    return error_of(with("  optimizer: {name: adamw, lr: 3.0e-4}", keys));
  };
  EXPECT_THAT(training("  optimizer: {name: adamw, momentum: 0.9}"),
              HasSubstr("training.optimizer.momentum: belongs to optimizer muon or sgd, not to adamw"));
  EXPECT_THAT(training("  optimizer: {name: sgd, beta1: 0.9}"),
              HasSubstr("belongs to optimizer adamw or muon, not to sgd"));
  EXPECT_THAT(training("  optimizer: {name: sgd, nesterov: true}"), HasSubstr("needs a momentum above 0"));
  EXPECT_THAT(training("  optimizer: {name: muon}\n  lora: {r: 4}"),
              HasSubstr("training.lora: adapters are not trained with muon"));
  EXPECT_THAT(training("  schedule: {name: cosin}"), HasSubstr("did you mean \"cosine\"?"));
  EXPECT_THAT(training("  schedule: {name: cosine, warmup_steps: 10}"),
              HasSubstr("warmup_steps (10) must be below training.steps (10)"));
  EXPECT_THAT(training("  schedule: {name: constant, min_lr: 0.1}"), HasSubstr("does not decay"));
  EXPECT_THAT(training("  schedule: {name: linear, min_lr: 0.1}"), HasSubstr("at most the optimizer's lr"));
  EXPECT_THAT(training("  clip_grad_norm: 0"),
              HasSubstr("training.clip_grad_norm: must be a number above 0"));
  EXPECT_EQ(training("  validation: {every_steps: 5}"),
            "job.yaml:7: training.validation: there is no validation data; name files in data.validation");
  EXPECT_THAT(error_of(with("elastic: {enabled: true}", "metrics: {trace_step: 11}")),
              HasSubstr("metrics.trace_step: must be an integer from 1 to 10"));
}

TEST(JobSpec, AWsdScheduleHasStepsInWhichTheRateFalls) {
  const auto job = [](const std::string& schedule) {
    return with("  optimizer: {name: adamw, lr: 3.0e-4}", "  schedule: " + schedule);
  };
  const auto read = [&](const std::string& schedule) {
    return parse_job_spec(job(schedule), "job.yaml").training.schedule;
  };
  EXPECT_EQ(read("{name: wsd}").annealing_steps, 1);
  EXPECT_EQ(read("{name: wsd, decay_steps: 70}").annealing_steps, 7);
  EXPECT_EQ(read("{name: wsd, annealing_steps: 4, annealing: 1-sqrt, warmup_steps: 6, min_lr: 1e-5}"),
            (ScheduleSpec{"wsd", 6, 0, 1e-5, 4, "1-sqrt"}));
  EXPECT_EQ(read("{name: inverse_sqrt, warmup_steps: 100, min_lr: 1e-5}").warmup_steps, 100);
  EXPECT_THAT(error_of(job("{name: wsd, warmup_steps: 7, annealing_steps: 4}")),
              HasSubstr("training.schedule: warmup_steps (7) and annealing_steps (4) must not be more than "
                        "all steps (10)"));
  EXPECT_THAT(error_of(job("{name: cosine, annealing_steps: 4}")),
              HasSubstr("training.schedule.annealing_steps: belongs to schedule wsd, not to cosine"));
  EXPECT_THAT(error_of(job("{name: wsd, annealing: sqrt}")), HasSubstr("did you mean \"1-sqrt\"?"));
  EXPECT_THAT(error_of(job("{name: inverse_sqrt, decay_steps: 5}")), HasSubstr("has no end"));
}

TEST(JobSpec, ValidationIsOfOneSetOrOfSetsWithNames) {
  const auto job = [](const std::string& sets) {
    return with("{train: text.bin, format: nanogpt}", "{train: text.bin, validation: " + sets + "}");
  };
  const auto read = [&](const std::string& sets) {
    return parse_job_spec(job(sets), "job.yaml").data.validation;
  };
  EXPECT_EQ(read("val.bin"), (std::vector<ValidationSet>{{"", "val.bin"}}));
  EXPECT_EQ(read("{web: a*.bin, code-2: b.bin}"),
            (std::vector<ValidationSet>{{"web", "a*.bin"}, {"code-2", "b.bin"}}));
  EXPECT_THAT(error_of(job("{}")), HasSubstr("data.validation: names no files"));
  EXPECT_THAT(error_of(job("{a/b: a.bin}")), HasSubstr("name the set with letters"));
  EXPECT_THAT(error_of(job("{web: [a.bin]}")), HasSubstr("data.validation.web"));
}

TEST(JobSpec, SpikesAveragesAndChecksHaveLimits) {
  const auto job = [](const std::string& keys) {
    return with("  optimizer: {name: adamw, lr: 3.0e-4}", "  " + keys);
  };
  const auto read = [&](const std::string& keys) { return parse_job_spec(job(keys), "job.yaml").training; };
  EXPECT_FALSE(read("seed: 1").on_spike || read("seed: 1").ema);
  EXPECT_EQ(read("on_spike: {kind: skip}").on_spike, SpikeSpec());
  EXPECT_EQ(read("on_spike: {factor: 3, window: 5, most_in_a_row: 2}").on_spike, (SpikeSpec{3, 5, 2}));
  EXPECT_EQ(read("ema: {decay: 0.99, validate: true}").ema, (EmaSpec{0.99, true}));
  EXPECT_THAT(error_of(job("on_spike: {factor: 0.5}")),
              HasSubstr("training.on_spike.factor: must be at least 1"));
  EXPECT_THAT(error_of(job("on_spike: {kind: stop}")), HasSubstr("training.on_spike.kind"));
  EXPECT_THAT(error_of(job("ema: {decay: 1}")), HasSubstr("training.ema.decay: must be below 1"));
  EXPECT_THAT(error_of(job("ema: {validate: true}")), HasSubstr("missing key \"decay\""));
  EXPECT_THAT(error_of(job("z_loss: -1")), HasSubstr("training.z_loss"));
  EXPECT_EQ(read("seed: 1").replicas, ReplicaSpec());
  EXPECT_EQ(read("replicas: {check_every: 5, on_divergence: heal}").replicas,
            (ReplicaSpec{5, OnDivergence::heal}));
  EXPECT_EQ(read("replicas: {check_every: 0, on_divergence: stop}").replicas,
            (ReplicaSpec{0, OnDivergence::stop}));
  EXPECT_THAT(error_of(job("replicas: {on_divergence: ignore}")),
              HasSubstr("training.replicas.on_divergence"));
}

TEST(JobSpec, The16BitPrecisionIsBf16WithFp16ToFallBackTo) {
  const auto training = [](const std::string& keys) {
    return parse_job_spec(with("  optimizer: {name: adamw, lr: 3.0e-4}", keys), "job.yaml").training;
  };
  const TrainingSpec either = training("  precision: 16-bit\n  loss_scale: {initial: 1024}\n");
  EXPECT_EQ(either.precision, Precision::bf16);
  EXPECT_EQ(either.fallback_precision, Precision::fp16);
  EXPECT_EQ(either.precision_name(), "16-bit");
  EXPECT_EQ(either.loss_scale.initial, 1024);
  EXPECT_TRUE(either.allows(Precision::bf16) && either.allows(Precision::fp16));
  EXPECT_FALSE(either.allows(Precision::fp32));
  const TrainingSpec one = training("  precision: bf16\n");
  EXPECT_EQ(one.fallback_precision, std::nullopt);
  EXPECT_EQ(one.precision_name(), "bf16");
  EXPECT_FALSE(one.allows(Precision::fp16));
}

TEST(JobSpec, TheLossScaleBelongsToFp16) {
  const auto job_with = [](const std::string& keys) {
    return with("  optimizer: {name: adamw, lr: 3.0e-4}", keys);
  };
  const std::string fp16 = "  precision: fp16\n";
  const LossScaleSpec usual = parse_job_spec(job_with(fp16), "job.yaml").training.loss_scale;
  EXPECT_EQ(usual, (LossScaleSpec{.initial = 65536, .window = 1000, .hysteresis = 2, .minimum = 1}));
  const std::string keys = "  loss_scale: {initial: 1024, window: 5, hysteresis: 1, minimum: 2}";
  EXPECT_EQ(parse_job_spec(job_with(fp16 + keys), "job.yaml").training.loss_scale,
            (LossScaleSpec{.initial = 1024, .window = 5, .hysteresis = 1, .minimum = 2}));

  const auto error = [&](const std::string& text) { return error_of(job_with(text)); };
  EXPECT_EQ(error("  precision: bf16\n  loss_scale: {initial: 1024}"),
            "job.yaml:8: training.loss_scale: belongs to precision fp16, not to bf16; leave it out");
  EXPECT_THAT(error(fp16 + "  loss_scale: {initial: 1000}"),
              HasSubstr("job.yaml:8: training.loss_scale.initial: must be a power of two, such as 65536"));
  EXPECT_THAT(error(fp16 + "  loss_scale: {initial: 0}"), HasSubstr("training.loss_scale.initial: must be"));
  EXPECT_THAT(error(fp16 + "  loss_scale: {initial: 4, minimum: 8}"),
              HasSubstr("training.loss_scale.minimum: must be at most the initial scale, 4"));
  EXPECT_THAT(error(fp16 + "  loss_scale: {window: 0}"), HasSubstr("training.loss_scale.window: must be"));
  EXPECT_THAT(error(fp16 + "  loss_scale: {hysteresis: -1}"), HasSubstr("training.loss_scale.hysteresis"));
  EXPECT_THAT(error(fp16 + "  loss_scale: {factor: 2}"), HasSubstr("factor"));
}

TEST(JobSpec, DeterminismIsAChoice) {
  const std::string optimizer = "  optimizer: {name: adamw, lr: 3.0e-4}";
  EXPECT_FALSE(parse_job_spec(with(optimizer, optimizer), "job.yaml").training.deterministic);
  EXPECT_TRUE(parse_job_spec(with(optimizer, "  deterministic: true"), "job.yaml").training.deterministic);
  EXPECT_THAT(error_of(with(optimizer, "  deterministic: 1")),
              HasSubstr("job.yaml:7: training.deterministic: must be true or false"));
}

TEST(JobSpec, NumbersInQuotesAreTexts) {
  EXPECT_THAT(error_of(with("steps: 10", "steps: \"10\"")), HasSubstr("is the text \"10\""));
}

TEST(Overrides, ChangeOnlyWhatTheyName) {
  JobSpec job = parse_job_spec(kJob, "job.yaml");
  PlanOverrides overrides;
  overrides.objective = parse_objective_option("cost", "--objective");
  overrides.max_gpus = parse_max_gpus("big=2,small=8", "--max-gpus");
  overrides.zones = parse_name_list("z2,z3", "--zones");
  apply(overrides, job);
  EXPECT_EQ(job.objective, Expense::cost);
  EXPECT_EQ(job.resources.max_gpus, (std::map<std::string, int>{{"big", 2}, {"small", 8}}));
  EXPECT_THAT(job.resources.zones, ElementsAre("z2", "z3"));
  EXPECT_DOUBLE_EQ(*job.constraints.most[Expense::cost], 1.2);
}

TEST(JobSpec, QuotasMayBeOfAZone) {
  JobSpec job = parse_job_spec(with("{big: 4}", "{big: {z1: 16, z2: 0}, small: 4}"), "job.yaml");
  EXPECT_EQ(job.resources.most_gpus("big", "z1"), 16);
  EXPECT_EQ(job.resources.most_gpus("big", "z2"), 0);
  EXPECT_EQ(job.resources.most_gpus("big", "z3"), std::numeric_limits<int>::max());
  EXPECT_EQ(job.resources.most_gpus("small", "z1"), 4);
  EXPECT_EQ(job.where("resources.max_gpus.big.z1").text(), "job.yaml:9");
  EXPECT_THAT(error_of(with("{big: 4}", "{big: {z1: -1}}")),
              HasSubstr("job.yaml:9: resources.max_gpus.big.z1: must be an integer"));

  PlanOverrides overrides;
  overrides.max_gpus = parse_max_gpus("big=12,big@z1=8,small@z1=2", "--max-gpus");
  apply(overrides, job);
  EXPECT_EQ(job.resources.most_gpus("big", "z1"), 8);
  EXPECT_EQ(job.resources.most_gpus("big", "z2"), 0) << "other limits stay";
  EXPECT_EQ(job.resources.most_gpus("big", "z3"), 12);
  EXPECT_EQ(job.resources.most_gpus("small", "z1"), 2);
  EXPECT_EQ(job.resources.most_gpus("small", "z3"), 4);
  overrides.max_gpus = parse_max_gpus("total=3", "--max-gpus");
  apply(overrides, job);
  EXPECT_EQ(job.resources.most_gpus("big", "z3"), 3);
  EXPECT_EQ(job.resources.most_gpus("small", "z1"), 2);
}

TEST(Overrides, BadValuesNameTheOption) {
  for (const char* bad : {"", "big", "big=", "=3", "big=-1", "big=1,,small=2", "big=1,big=2", "big=1x",
                          "@z=1", "big@=1", "total@z=1", "big=99999999999"}) {
    EXPECT_THROW(parse_max_gpus(bad, "--max-gpus"), InputError) << bad;
  }
  EXPECT_THROW(parse_limit(Expense::cost, "-1", "--max-cost"), InputError);
  EXPECT_THROW(parse_limit(Expense::cost, "0", "--max-cost"), InputError);
  EXPECT_THROW(parse_min_throughput("inf", "--min-throughput"), InputError);
  EXPECT_THROW(parse_time_limit("soon", "--time-limit"), InputError);
  EXPECT_DOUBLE_EQ(parse_time_limit("500ms", "--time-limit"), 0.5);
  try {
    parse_objective_option("thruput", "--objective");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "--objective: must be throughput, cost or energy, is \"thruput\", did you mean \"throughput\"?");
  }
}

TEST(JobSpec, AnotherTrainerNeedsAProgram) {
  const std::string job =
      "model: {family: gpt2, layers: 4, hidden: 64, heads: 4, sequence: 128, vocabulary: 512}\n"
      "training: {global_batch: 8, steps: 10}\ntrainer: {kind: torchrun, command: []}\n";
  EXPECT_THAT(error_of(job), HasSubstr("trainer.command: names no program"));
}

TEST(JobSpec, AProgramHangsAfterATimeOrNever) {
  const auto job = [](const std::string& more) {
    return "model: {family: gpt2, layers: 4, hidden: 64, heads: 4, sequence: 128, vocabulary: 512}\n"
           "training: {global_batch: 8, steps: 10}\ntrainer: {kind: torchrun, command: [python]" +
           more + "}\n";
  };
  const auto timeout_s = [&](const std::string& more) {
    return parse_job_spec(job(more), "job.yaml").trainer.hang_timeout_s;
  };
  EXPECT_EQ(timeout_s(""), 1800);
  EXPECT_EQ(timeout_s(", hang_timeout: 90s"), 90);
  EXPECT_EQ(timeout_s(", hang_timeout: never"), std::numeric_limits<double>::infinity());
  EXPECT_THAT(error_of(job(", hang_timeout: 0.5")),
              HasSubstr("trainer.hang_timeout: must be at least 1s, or never"));
  EXPECT_THAT(error_of(job(", hang_timeout: nevr")), HasSubstr("trainer.hang_timeout: "));
}

TEST(Text, NearestIsASlipOfTheHandNotAGuess) {
  EXPECT_EQ(nearest("layerz", {"hidden", "layers", "heads"}), "layers");
  EXPECT_EQ(nearest("lyaers", {"hidden", "layers", "heads"}), "layers");
  EXPECT_EQ(nearest("BIG", {"big", "small"}), "big");
  EXPECT_EQ(nearest("xyzzy", {"hidden", "layers", "heads"}), "");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(nearest("a800", {"T4-16", "A800-80-nvlink"}), "A800-80-nvlink") << "not written to its end";
  EXPECT_EQ(nearest("a8", {"T4-16-pcie", "A800-80-nvlink"}), "");
}

TEST(Text, QuotingKeepsOneLine) {
  EXPECT_EQ(in_quotes("a\nb\x01"), "\"a\\nb\\x01\"");
  EXPECT_LT(in_quotes(std::string(1000, 'x')).size(), 70u);
}

}  // namespace
}  // namespace sailor
