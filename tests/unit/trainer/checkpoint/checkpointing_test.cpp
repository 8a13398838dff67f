#include "trainer/checkpoint/checkpointing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include "planner/plan/rank_layout.h"
#include "planner/spec/error.h"
#include "planner/spec/model_family.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "tests/unit/trainer/small_training.h"
#include "trainer/checkpoint/block_checksums.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/directory_lock.h"
#include "trainer/checkpoint/export_model.h"
#include "trainer/model/element_types.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

JobSpec job_to_save(const std::string& family = "gpt2") {
  return scheduled_job(family, /*steps=*/6);
}

Plan checkpoint_plan(const JobSpec& job, const std::vector<std::vector<int>>& pipelines,
                     const std::vector<int>& microbatches) {
  return sailor::make_plan(job, /*microbatch=*/1, pipelines, microbatches);
}

// Saves, and returns what came of it.
SaveResult save_now(RankTrainer& trainer, const std::string& directory, int keep) {
  trainer.save(directory, keep);
  const std::vector<SaveResult> results = trainer.saves(/*wait=*/true);
  EXPECT_EQ(results.size(), 1u);
  EXPECT_EQ(results.at(0).steps_done, trainer.next_step());
  return results.at(0);
}

class Checkpointing : public ::testing::Test {
 protected:
  Checkpointing()
      : directory_(::testing::TempDir() + "sailor-checkpoints-" + std::to_string(getpid()) + "-" +
                   ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(directory_);
  }
  ~Checkpointing() override { fs::remove_all(directory_); }

  struct Trained {
    std::vector<double> losses;
    LoadedCheckpoint loaded;                       // as rank 0 has it
    std::map<std::string, std::set<double>> sums;  // of squares, of whole replicated parameters by name
  };
  // Goes on from the newest checkpoint, if wanted, up to `until` steps; saves then, if wanted.
  Trained train(const JobSpec& job, const Plan& plan, bool load, int64_t until, bool save, int keep = 3) {
    const TokenData data = repeating_data(job);
    TestJob ranks("thread", num_ranks(plan));
    std::mutex mutex;
    Trained trained;
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job, plan, factory.rank(), factory, data);
      LoadedCheckpoint loaded;
      if (load) loaded = trainer.load(directory_);
      std::vector<double> losses;
      while (trainer.next_step() < until) losses.push_back(trainer.step().loss);
      if (save) save_now(trainer, directory_, keep);
      const std::lock_guard lock(mutex);
      if (factory.rank() == 0) {
        trained.losses = losses;
        trained.loaded = loaded;
      }
      for (const Parameter* parameter : trainer.parameters()) {
        if (!parameter->sharded)
          trained.sums[parameter->name].insert(
              parameter->value.detach().to(at::kDouble).pow(2).sum().item<double>());
      }
    });
    return trained;
  }

  const std::string directory_;
};

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

struct PlanPair {
  std::string name;
  JobSpec job;
  Plan writer, reader;
};

std::vector<PlanPair> plan_pairs() {
  std::vector<PlanPair> pairs;
  const auto add = [&](const std::string& name, const JobSpec& job, Plan writer, Plan reader) {
    pairs.push_back({name, job, std::move(writer), std::move(reader)});
  };
  JobSpec job = job_to_save();
  add("one rank to many", job, checkpoint_plan(job, {{1}}, {8}),
      checkpoint_plan(job, {{2, 1}, {1, 4}}, {5, 3}));
  add("mixed TP to one rank", job, checkpoint_plan(job, {{4, 1}, {2}, {1}}, {4, 2, 2}),
      checkpoint_plan(job, {{1}}, {8}));
  Plan sharded = checkpoint_plan(job, {{2, 1}, {1, 2}, {1}}, {3, 3, 2});
  sharded.zero = Zero::optimizer;
  Plan sharded_otherwise = checkpoint_plan(job, {{1, 2}, {4}}, {4, 4});
  sharded_otherwise.zero = Zero::optimizer;
  add("ZeRO-1 to another ZeRO-1", job, sharded, sharded_otherwise);
  JobSpec tied = job_to_save();
  tied.model.tied_embeddings = true;
  Plan interleaved = checkpoint_plan(tied, {{2, 2, 2, 2}}, {8});
  interleaved.interleave = 2;
  sharded.model = interleaved.model;
  add("tied, interleaved to ZeRO-1", tied, interleaved, sharded);
  add("tied, ZeRO-1 to interleaved", tied, sharded, interleaved);
  JobSpec llama = job_to_save("llama");
  llama.model.kv_heads = 2;
  llama.model.vocabulary = 13;  // padded to 14 and to 16
  add("grouped heads, other padding", llama, checkpoint_plan(llama, {{2, 1}, {1}}, {4, 4}),
      checkpoint_plan(llama, {{1, 2}, {2, 1}}, {6, 2}));
  JobSpec sgd = job_to_save("opt");
  sgd.training.optimizer.name = "sgd";
  sgd.training.optimizer.momentum = 0.9;
  add("SGD with momentum", sgd, sharded, checkpoint_plan(sgd, {{4}, {1, 1}}, {4, 4}));
  JobSpec muon = job_to_save("llama");
  muon.training.optimizer.name = "muon";
  muon.training.optimizer.momentum = 0.9;
  add("Muon, ZeRO-1 to mixed TP", muon, sharded, checkpoint_plan(muon, {{4}, {1, 1}}, {4, 4}));
  return pairs;
}

double bound_of(Precision precision) {
  if (precision == Precision::fp64) return 1e-12;
  if (precision == Precision::fp32) return 1e-5;
  return precision == Precision::fp16 ? 2.5e-3 : 2e-2;
}

TEST_F(Checkpointing, AnyPlanGoesOnFromWhatAnyOtherHasSaved) {
  for (PlanPair& pair : plan_pairs()) {
    for (const Precision precision : {Precision::fp32, Precision::fp64, Precision::bf16, Precision::fp16}) {
      SCOPED_TRACE(pair.name + ", " + to_string(precision));
      pair.job.training.precision = precision;
      fs::remove_all(directory_);
      const Trained whole = train(pair.job, pair.writer, false, 6, false);
      const Trained first = train(pair.job, pair.writer, true, 3, true);
      EXPECT_EQ(first.loaded.path, "") << "an empty directory is no error";
      const Trained second = train(pair.job, pair.reader, true, 6, false);
      EXPECT_EQ(second.loaded.path, directory_ + "/step-3");
      ASSERT_EQ(first.losses.size(), 3u);
      ASSERT_EQ(second.losses.size(), 3u);
      // Activations round to 2^-9 in bf16 and 2^-12 in fp16, differently under another plan.
      const double bound = bound_of(precision);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(first.losses[i], whole.losses[i]);
        EXPECT_NEAR(second.losses[i], whole.losses[3 + i], bound * whole.losses[3 + i]) << "step " << 4 + i;
      }
      for (const auto& [name, sums] : second.sums) {
        EXPECT_EQ(sums.size(), 1u) << "ranks disagree about " << name;
        ASSERT_TRUE(whole.sums.contains(name)) << name;
        EXPECT_NEAR(*sums.begin(), *whole.sums.at(name).begin(), bound * (1 + *sums.begin())) << name;
      }
    }
  }
}

TEST_F(Checkpointing, TheSamePlanGoesOnWithTheSameBits) {
  for (const Zero zero : {Zero::none, Zero::optimizer}) {
    for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
      JobSpec job = job_to_save();
      job.training.precision = precision;
      Plan plan = checkpoint_plan(job, {{2, 1}, {1}}, {5, 3});
      plan.zero = zero;
      fs::remove_all(directory_);
      const Trained whole = train(job, plan, false, 6, false);
      train(job, plan, false, 3, true);
      const Trained second = train(job, plan, true, 6, false);
      EXPECT_EQ(second.losses, std::vector<double>(whole.losses.begin() + 3, whole.losses.end()));
      EXPECT_EQ(second.sums, whole.sums);
    }
  }
}

// A norm above the median of the last two is a spike: with other norms, other steps would be skipped.
TEST_F(Checkpointing, TheSamePlanGoesOnWithTheSameSpikesAndAverages) {
  JobSpec job = job_to_save();
  job.training.on_spike = SpikeSpec{.factor = 1, .window = 2, .most_in_a_row = 100};
  job.training.ema = EmaSpec{.decay = 0.75};
  job.training.steps = 12;
  const Plan plan = checkpoint_plan(job, {{2, 1}, {1}}, {5, 3});
  const Trained whole = train(job, plan, false, 9, true);
  const CheckpointManifest expected = open_checkpoint(directory_ + "/step-9");
  EXPECT_GT(expected.spikes.skipped_steps, 0);
  EXPECT_LT(expected.spikes.skipped_steps, 8);
  const auto average = [&](const std::string& path) {
    CheckpointReader reader(path, open_checkpoint(path));
    return read_whole(reader, list_parameters(job.model, job.model.vocabulary).at(5), /*average=*/true);
  };
  const at::Tensor expected_average = average(directory_ + "/step-9");
  fs::remove_all(directory_);
  train(job, plan, false, 4, true);
  const Trained second = train(job, plan, true, 9, true);
  EXPECT_EQ(second.losses, std::vector<double>(whole.losses.begin() + 4, whole.losses.end()));
  EXPECT_EQ(second.sums, whole.sums);
  EXPECT_EQ(open_checkpoint(directory_ + "/step-9").spikes, expected.spikes);
  EXPECT_TRUE(at::equal(average(directory_ + "/step-9"), expected_average));
}

TEST_F(Checkpointing, AnAverageThatTheCheckpointLacksStartsFromItsValues) {
  JobSpec job = job_to_save();
  const Plan plan = checkpoint_plan(job, {{2, 1}, {1}}, {5, 3});
  train(job, plan, false, 3, true);
  job.training.ema = EmaSpec{.decay = 0.75};
  const TokenData data = repeating_data(job);
  TestJob ranks("thread", num_ranks(plan));
  ranks.run([&](CommFactory& factory) {
    RankTrainer trainer(job, plan, factory.rank(), factory, data);
    EXPECT_EQ(trainer.load(directory_).steps_done, 3);
    for (std::size_t i = 0; i < trainer.optimizer().slices().size(); ++i)
      EXPECT_TRUE(
          at::equal(trainer.optimizer().state(i).back().tensor, trainer.optimizer().slices()[i].value));
  });
}

// Three overflows; a scale that is half of the initial one for the first, a quarter for the others.
TEST_F(Checkpointing, TheLossScaleGoesOnUnderAnyPlan) {
  JobSpec job = job_to_save();
  job.training.precision = Precision::fp16;
  job.training.loss_scale = {.initial = int64_t{1} << 40, .window = 5};
  const Plan writer = checkpoint_plan(job, {{2, 1}, {1}}, {5, 3}),
             reader = checkpoint_plan(job, {{1, 1}}, {8});
  train(job, writer, false, 3, true);
  const LossScaleState saved = open_checkpoint(directory_ + "/step-3").loss_scale;
  EXPECT_EQ(saved, (LossScaleState{.scale = 0x1p38, .skipped_steps = 3}));
  EXPECT_EQ(open_checkpoint(directory_ + "/step-3").optimizer_steps, 0);

  const TokenData data = repeating_data(job);
  const auto scale_of = [&](const JobSpec& resumed) {
    double scale = -1;
    TestJob ranks("thread", num_ranks(reader));
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(resumed, reader, factory.rank(), factory, data);
      trainer.load(directory_);
      const StepResult result = trainer.step();
      save_now(trainer, directory_ + "/next", 1);
      if (factory.rank() == 0) scale = result.loss_scale;
    });
    return scale;
  };
  EXPECT_EQ(scale_of(job), 0x1p38);
  EXPECT_EQ(open_checkpoint(directory_ + "/next/step-4").loss_scale,
            (LossScaleState{.scale = 0x1p37, .skipped_steps = 4}));
  JobSpec wide = job;
  wide.training.precision = Precision::bf16;
  EXPECT_EQ(scale_of(wide), 0) << "another precision has no use for it";
  fs::remove_all(directory_);
  train(wide, writer, false, 3, true);
  EXPECT_EQ(scale_of(job), 0x1p40) << "a checkpoint that has none";
}

// What the manifest says is checked by open_checkpoint(): every element in exactly one place.
TEST_F(Checkpointing, ReplicasShareTheWorkAndNothingIsWrittenTwice) {
  const JobSpec job = job_to_save();
  const Plan plan = checkpoint_plan(job, {{2, 2}, {2, 2}}, {4, 4});
  train(job, plan, false, 1, true);
  const CheckpointManifest manifest = open_checkpoint(directory_ + "/step-1");
  int64_t elements = 0;
  for (const ParameterSpec& parameter : list_parameters(job.model, job.model.vocabulary))
    elements += parameter.real_rows * std::max<int64_t>(1, parameter.columns);
  ASSERT_EQ(manifest.files.size(), 8u);
  std::vector<int64_t> held;
  int64_t sum = 0;
  for (const CheckpointFile& file : manifest.files) {
    int64_t bytes = 0;
    for (const CheckpointPiece& piece : file.pieces) bytes += 4 * piece.count;
    held.push_back(bytes);
    sum += bytes;
  }
  EXPECT_EQ(sum, 3 * 4 * elements) << "value, m and v, in 32 bit each";
  const auto [least, most] = std::minmax_element(held.begin(), held.begin() + 4);
  EXPECT_LT(static_cast<double>(*most - *least), 0.5 * static_cast<double>(*most));
  EXPECT_EQ(manifest.step, 1);
  EXPECT_EQ(manifest.optimizer_steps, 1);
}

// A change of every single file of the newest checkpoint, one at a time: the one before it is used.
TEST_F(Checkpointing, WhateverIsDamagedIsFoundAndTheOneBeforeIsUsed) {
  const JobSpec job = job_to_save();
  const Plan plan = checkpoint_plan(job, {{2, 1}}, {8});
  train(job, plan, false, 2, true);
  train(job, plan, true, 4, true);
  const std::string newest = directory_ + "/step-4";
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(newest)) files.push_back(entry.path());
  ASSERT_EQ(files.size(), 5u) << "three ranks, manifest.json and DONE";
  const Plan reader = checkpoint_plan(job, {{1}}, {8});
  const auto expect_skipped = [&](const std::string& what) {
    const Trained trained = train(job, reader, true, 3, false);
    EXPECT_EQ(trained.loaded.path, directory_ + "/step-2") << what;
    EXPECT_EQ(trained.loaded.steps_done, 2) << what;
    ASSERT_EQ(trained.loaded.skipped.size(), 1u) << what;
    EXPECT_THAT(trained.loaded.skipped[0], ::testing::StartsWith("skipped step-4: " + newest + "/")) << what;
    EXPECT_EQ(trained.losses.size(), 1u);
  };
  for (const std::string& file : files) {
    const std::string whole = read_bytes(file);
    for (const std::size_t at : {std::size_t{0}, whole.size() / 2, whole.size() - 1}) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ 4);
      write_bytes(file, flipped);
      expect_skipped(file + ", a bit at " + std::to_string(at));
    }
    write_bytes(file, whole.substr(0, whole.size() - 1));
    expect_skipped(file + ", truncated");
    write_bytes(file, whole + "x");
    expect_skipped(file + ", longer");
    fs::remove(file);
    expect_skipped(file + ", missing");
    write_bytes(file, whole);
  }
  EXPECT_EQ(train(job, reader, true, 4, false).loaded.path, newest) << "put together again it is whole";
}

TEST_F(Checkpointing, WhenNothingIsWholeTrainingDoesNotGoOnFromHalfOfIt) {
  const JobSpec job = job_to_save();
  const Plan plan = checkpoint_plan(job, {{1, 1}}, {8});
  train(job, plan, false, 1, true);
  const std::string file = directory_ + "/step-1/rank-00001.safetensors";
  std::string bytes = read_bytes(file);
  bytes[bytes.size() - 9] = static_cast<char>(bytes[bytes.size() - 9] ^ 1);
  write_bytes(file, bytes);
  try {
    train(job, plan, true, 2, false);
    ADD_FAILURE() << "half a checkpoint is trained on";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("rank-00001.safetensors is not what was written"));
  }
  // A missing file is detected before anything is changed: training starts from the beginning.
  fs::remove(directory_ + "/step-1/DONE");
  const Trained anew = train(job, plan, true, 1, false);
  EXPECT_EQ(anew.loaded.path, "");
  EXPECT_EQ(anew.loaded.skipped.size(), 1u);
}

TEST_F(Checkpointing, TheNewestAreKeptAndWhatAnInterruptedOneLeftIsRemoved) {
  const JobSpec job = job_to_save();
  const Plan plan = checkpoint_plan(job, {{1}}, {8});
  fs::create_directories(directory_ + "/step-1.tmp");
  fs::create_directories(directory_ + "/step-9.replaced.tmp");
  fs::create_directories(directory_ + "/step-x.tmp");  // not ours
  fs::create_directories(directory_ + "/step-0");      // torn
  for (int step = 1; step <= 4; ++step) train(job, plan, true, step, true, 2);
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory_)) names.insert(entry.path().filename());
  EXPECT_THAT(names, ::testing::ElementsAre("LOCK", "step-3", "step-4", "step-x.tmp"));
  // A damaged newest one does not count, and is replaced when training comes there again.
  fs::remove(directory_ + "/step-4/DONE");
  const Trained again = train(job, plan, true, 4, true, 1);
  EXPECT_EQ(again.loaded.path, directory_ + "/step-3");
  EXPECT_THAT(list_checkpoints(directory_), ::testing::ElementsAre(directory_ + "/step-4"));
  EXPECT_EQ(open_checkpoint(directory_ + "/step-4").step, 4);
}

TEST_F(Checkpointing, ACheckpointOfAnotherJobIsOneClearError) {
  const JobSpec job = job_to_save();
  const Plan plan = checkpoint_plan(job, {{1, 2}}, {8});
  train(job, plan, false, 1, true);
  const auto error_with = [&](const std::function<void(JobSpec&)>& change) -> std::string {
    JobSpec other = job;
    change(other);
    try {
      train(other, checkpoint_plan(other, {{1, 2}}, {8}), true, 1, false);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(error_with([](JobSpec& j) { j.model.hidden = 32; }),
              HasSubstr("model.hidden: the checkpoint " + directory_ + "/step-1 has 16, this job has 32"));
  EXPECT_THAT(
      error_with([](JobSpec& j) { j.model.family = "opt"; }),
      HasSubstr("model.family: the checkpoint " + directory_ + "/step-1 has \"gpt2\", this job has \"opt\""));
  EXPECT_THAT(error_with([](JobSpec& j) { j.model.tied_embeddings = true; }),
              HasSubstr("model.tied_embeddings"));
  EXPECT_THAT(error_with([](JobSpec& j) { j.training.optimizer.name = "sgd"; }),
              HasSubstr("training.optimizer.name"));
  EXPECT_THAT(error_with([](JobSpec& j) { j.training.seed = 7; }), HasSubstr("training.seed"));
  EXPECT_EQ(error_with([](JobSpec& j) { j.training.steps = 60; }), "no error") << "longer training goes on";
  EXPECT_EQ(error_with([](JobSpec& j) { j.training.optimizer.lr = 1e-3; }), "no error");
  EXPECT_EQ(error_with([](JobSpec& j) { j.training.precision = Precision::bf16; }), "no error");
}

// What is done before one save of two ranks between two good ones; `error` = what that save says on both.
struct Obstacle {
  std::string name;
  std::function<void(const std::string&directory)> put, remove;
  std::string error;
};

TEST_F(Checkpointing, WhatCannotBeWrittenIsOneErrorOnEveryRankAndTrainingGoesOn) {
  const JobSpec job = job_to_save();
  const Plan plan = checkpoint_plan(job, {{1, 1}}, {8});
  const TokenData data = repeating_data(job);
  const Obstacle obstacles[] = {
      {"a file is in the way", [](const std::string& d) { write_bytes(d + "/step-2.tmp", "no directory"); },
       [](const std::string& d) { fs::remove(d + "/step-2.tmp"); }, "checkpoint: cannot "},
      {"the directory is gone, and a file in its place",
       [](const std::string& d) {
         fs::rename(d, d + "-away");
         write_bytes(d, "no directory");
       },
       [](const std::string& d) {
         fs::remove(d);
         fs::rename(d + "-away", d);
       },
       "checkpoint: cannot "}};
  for (const Obstacle& obstacle : obstacles) {
    SCOPED_TRACE(obstacle.name);
    fs::remove_all(directory_);
    TestJob ranks("thread", 2);
    std::mutex mutex;
    std::set<std::string> errors;
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job, plan, factory.rank(), factory, data);
      trainer.step();
      EXPECT_EQ(save_now(trainer, directory_, 3).saved.path, directory_ + "/step-1");
      trainer.step();
      if (factory.rank() == 0) obstacle.put(directory_);
      const SaveResult result = save_now(trainer, directory_, 3);
      {
        const std::lock_guard lock(mutex);
        errors.insert(result.error);
      }
      if (factory.rank() == 0) obstacle.remove(directory_);
      trainer.step();
      EXPECT_EQ(save_now(trainer, directory_, 3).saved.path, directory_ + "/step-3");
    });
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_THAT(*errors.begin(), ::testing::StartsWith(obstacle.error));
    EXPECT_THAT(list_checkpoints(directory_),
                ::testing::ElementsAre(directory_ + "/step-3", directory_ + "/step-1"));
    for (const std::string& path : list_checkpoints(directory_))
      CheckpointReader(path, open_checkpoint(path)).verify();
  }
}

TEST_F(Checkpointing, WhatIsSavedIsTheStateOfItsStepThoughTrainingWentOn) {
  const JobSpec job = job_to_save();
  const Plan plan = checkpoint_plan(job, {{1, 2}, {1}}, {5, 3});
  const TokenData data = repeating_data(job);
  TestJob ranks("thread", num_ranks(plan));
  ranks.run([&](CommFactory& factory) {
    RankTrainer trainer(job, plan, factory.rank(), factory, data);
    std::vector<SaveResult> results;
    for (int i = 0; i < 4; ++i) {
      trainer.step();
      trainer.save(directory_, 10);
      trainer.step();  // while it is written
      for (const SaveResult& result : trainer.saves()) results.push_back(result);
    }
    for (const SaveResult& result : trainer.saves(/*wait=*/true)) results.push_back(result);
    EXPECT_EQ(results.size(), 4u);
    for (const SaveResult& result : results) EXPECT_EQ(result.error, "");
  });
  // The same, saved while training waits.
  const std::string moving = directory_ + "-moving";
  fs::rename(directory_, moving);
  for (const int64_t steps : {1, 3, 5, 7}) train(job, plan, true, steps, true, 10);
  for (const int64_t steps : {1, 3, 5, 7}) {
    const std::string step = "/step-" + std::to_string(steps);
    const CheckpointManifest a = open_checkpoint(moving + step), b = open_checkpoint(directory_ + step);
    ASSERT_EQ(a.files.size(), b.files.size());
    for (std::size_t i = 0; i < a.files.size(); ++i)
      EXPECT_EQ(a.files[i].checksums, b.files[i].checksums) << step;
  }
  fs::remove_all(moving);
}

TEST_F(Checkpointing, ASecondJobOnTheDirectoryIsRefusedUntilTheFirstOneEnds) {
  const JobSpec job = job_to_save();
  const Plan plan = checkpoint_plan(job, {{1, 1}}, {8});
  {
    const DirectoryLock other(directory_);
    try {
      train(job, plan, true, 1, true);
      ADD_FAILURE() << "two jobs write into one directory";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(),
                  ::testing::HasSubstr(directory_ + ": checkpoints are being written here by "));
      EXPECT_THAT(error.what(), ::testing::HasSubstr("process " + std::to_string(getpid())));
    }
  }
  EXPECT_EQ(train(job, plan, true, 1, true).loaded.path, "");
  EXPECT_EQ(train(job, plan, true, 2, true).loaded.path, directory_ + "/step-1");
}

// Of one run, as ranks of several generations are: the one before may hang, and hold the lock.
TEST_F(Checkpointing, ThePresentProcessOfARunTakesTheLockFromTheOneBefore) {
  setenv("SAILOR_RUN_DIRECTORY", "/runs/7", 1);
  const DirectoryLock before(directory_);
  auto now = std::make_unique<DirectoryLock>(directory_);
  setenv("SAILOR_RUN_DIRECTORY", "/runs/8", 1);
  EXPECT_THROW(DirectoryLock{directory_}, InputError) << "another run";
  unsetenv("SAILOR_RUN_DIRECTORY");
  EXPECT_THROW(DirectoryLock{directory_}, InputError) << "no run";
  now.reset();
  const DirectoryLock next(directory_);  // though the first one still has its file
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()), 1) << "LOCK alone";
}

TEST_F(Checkpointing, ADiskThatIsTooSmallIsToldBeforeAnythingIsWritten) {
  fs::create_directories(directory_);
  EXPECT_NO_THROW(require_space(directory_, 1));
  try {
    require_space(directory_, int64_t{1} << 60);
    ADD_FAILURE() << "a disk of an exabyte";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("MB are needed"));
  }
}

TEST_F(Checkpointing, WhatIsExportedIsWhatTheRanksHave) {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    JobSpec job = job_to_save();
    job.training.precision = precision;
    job.model.tied_embeddings = true;  // as config.json of this family can say
    const Plan plan = checkpoint_plan(job, {{2, 1}, {1}}, {5, 3});
    const TokenData data = repeating_data(job);
    TestJob ranks("thread", num_ranks(plan));
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job, plan, factory.rank(), factory, data);
      trainer.step();
      save_now(trainer, directory_, 1);
      trainer.export_to(directory_ + "/by-ranks");
    });
    const std::string path = directory_ + "/step-1";
    CheckpointReader reader(path, open_checkpoint(path));
    export_model(directory_ + "/by-file", reader.manifest().model, scalar_type(reader.manifest().precision),
                 [&](const ParameterSpec& parameter) { return read_whole(reader, parameter); });
    for (const char* file : {"/model.safetensors", "/config.json"}) {
      const std::string by_ranks = read_bytes(directory_ + "/by-ranks" + file);
      EXPECT_GT(by_ranks.size(), 100u);
      EXPECT_TRUE(by_ranks == read_bytes(directory_ + "/by-file" + file))
          << file << ", " << to_string(precision);
    }
  }
}

// A rank of two reads about half, not all.
TEST_F(Checkpointing, HowMuchOfItIsReadIsToldOnEveryRank) {
  const JobSpec job = job_to_save();
  const TokenData data = repeating_data(job);
  train(job, checkpoint_plan(job, {{1}}, {8}), false, 1, true);
  const Plan plan = checkpoint_plan(job, {{1, 2}, {1}}, {5, 3});
  TestJob ranks("thread", num_ranks(plan));
  std::mutex mutex;
  std::multiset<std::pair<int64_t, int64_t>> last;  // told to each rank
  ranks.run([&](CommFactory& factory) {
    RankTrainer trainer(job, plan, factory.rank(), factory, data);
    std::pair<int64_t, int64_t> told;
    trainer.tell_loading([&](int64_t done, int64_t total) {
      EXPECT_GE(done, told.first) << "it only grows";
      told = {done, total};
    });
    trainer.load(directory_);
    const std::lock_guard lock(mutex);
    last.insert(told);
  });
  ASSERT_EQ(last.size(), static_cast<std::size_t>(num_ranks(plan)));
  const auto [done, total] = *last.begin();
  EXPECT_EQ(last.count({done, total}), last.size()) << "the same on all of them";
  EXPECT_EQ(done, total) << "it comes to its end";
  // Two pipelines have everything, once each, and what TP does not shard is on both ranks of a group.
  EXPECT_GE(total, 2 * open_checkpoint(directory_ + "/step-1").bytes() * 9 / 10);
}

TEST_F(Checkpointing, ARankReadsTheBlocksThatItNeedsOnly) {
  JobSpec job = job_to_save();
  job.model.hidden = 256;
  job.model.feed_forward = 1024;
  train(job, checkpoint_plan(job, {{1}}, {8}), false, 1, true);
  const std::string path = directory_ + "/step-1";
  const CheckpointManifest manifest = open_checkpoint(path);
  CheckpointReader reader(path, manifest);
  const CheckpointTensor* tensor = reader.find("2.qkv.weight");
  ASSERT_NE(tensor, nullptr);
  std::vector<float> rows(static_cast<std::size_t>(tensor->elements() / 2));
  reader.read(tensor, 0, tensor->elements() / 2, rows.data());
  EXPECT_LE(reader.bytes_read(), 2 * kChecksumBlockBytes + tensor->elements() / 2 * 4);
  EXPECT_GT(manifest.bytes(), 20 * kChecksumBlockBytes);
}

}  // namespace
}  // namespace sailor
