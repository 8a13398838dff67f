// Disks that fail in the middle of a training: real file systems on a loop device, where this machine lets
// us mount one.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>

#include "planner/process/scratch_directory.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "tests/unit/trainer/small_training.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// An ext4 file system of its own, during the object's lifetime.
class LoopDisk {
 public:
  explicit LoopDisk(int megabytes) : image_(scratch_.path() + "/image"), path_(scratch_.path() + "/disk") {
    std::ofstream(image_).close();
    fs::resize_file(image_, static_cast<std::uintmax_t>(megabytes) << 20);
    fs::create_directory(path_);
    mounted_ = geteuid() == 0 && shell("mkfs.ext4 -q -O ^has_journal " + image_) &&
               shell("mount -o loop " + image_ + " " + path_);
  }
  ~LoopDisk() {
    if (!mounted_) return;
    thaw();
    umount2(path_.c_str(), MNT_DETACH);
  }
  LoopDisk(const LoopDisk&) = delete;
  LoopDisk& operator=(const LoopDisk&) = delete;

  bool mounted() const { return mounted_; }
  const std::string& path() const { return path_; }
  // Nothing is written, and writers wait.
  bool freeze() { return control(FIFREEZE); }
  bool thaw() { return control(FITHAW); }
  // Nobody, not even root, may write to a directory of it.
  static bool forbid(const std::string& directory) { return shell("chattr +i " + directory); }
  static bool allow(const std::string& directory) { return shell("chattr -i " + directory); }
  void fill() {
    std::ofstream file(path_ + "/filler", std::ios::binary);
    const std::string chunk(1 << 16, 'x');
    while (file.write(chunk.data(), static_cast<std::streamsize>(chunk.size())).flush()) {
    }
  }

 private:
  static bool shell(const std::string& command) {
    return std::system((command + " > /dev/null 2>&1").c_str()) == 0;
  }
  bool control(unsigned long request) {
    const int descriptor = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return false;
    const bool done = ioctl(descriptor, request, 0) == 0;
    close(descriptor);
    return done;
  }

  const ScratchDirectory scratch_;
  const std::string image_, path_;
  bool mounted_ = false;
};

class DiskFaults : public ::testing::Test {
 protected:
  DiskFaults() : job_(small_job("gpt2", /*layers=*/4, /*global_batch=*/8)), data_(repeating_data(job_)) {
    job_.training.steps = 40;
  }
  void SetUp() override {
    if (!disk_.mounted()) GTEST_SKIP() << "no file system can be mounted here";
  }

  // Two ranks train, with `body` on each of them.
  void train(const std::function<void(RankTrainer&, bool first)>& body) {
    const Plan plan = make_plan(job_, /*microbatch=*/1, {{1, 1}}, {8});
    TestJob ranks("thread", 2);
    ranks.run([&](CommFactory& factory) {
      RankTrainer trainer(job_, plan, factory.rank(), factory, data_);
      body(trainer, factory.rank() == 0);
    });
  }
  std::vector<double> undisturbed_losses(int steps) {
    std::vector<double> losses;
    train([&](RankTrainer& trainer, bool first) {
      for (int i = 0; i < steps; ++i) {
        const double loss = trainer.step().loss;
        if (first) losses.push_back(loss);
      }
    });
    return losses;
  }
  std::string save(RankTrainer& trainer) {
    trainer.save(directory_, 5);
    const std::vector<SaveResult> results = trainer.saves(/*wait=*/true);
    return results.size() == 1 ? results.front().error : "not one save";
  }
  // A good save, one while something is wrong, and a good one again; returns the error in between.
  std::string error_with(const std::function<void()>& put, const std::function<void()>& remove) {
    const std::vector<double> expected = undisturbed_losses(3);
    std::mutex mutex;
    std::set<std::string> errors;
    train([&](RankTrainer& trainer, bool first) {
      EXPECT_EQ(trainer.step().loss, expected[0]);
      EXPECT_EQ(save(trainer), "");
      EXPECT_EQ(trainer.step().loss, expected[1]);
      if (first) put();
      const std::string error = save(trainer);
      if (first) remove();
      EXPECT_EQ(trainer.step().loss, expected[2]) << "the state of training is what it was";
      EXPECT_EQ(save(trainer), "");
      const std::lock_guard lock(mutex);
      errors.insert(error);
    });
    EXPECT_EQ(errors.size(), 1u) << "one message, the same everywhere";
    for (const std::string& path : list_checkpoints(directory_))
      EXPECT_NO_THROW(CheckpointReader(path, open_checkpoint(path)).verify());
    return *errors.begin();
  }
  std::vector<std::string> steps_kept() const {
    std::vector<std::string> names;
    for (const std::string& path : list_checkpoints(directory_)) names.push_back(fs::path(path).filename());
    return names;
  }

  LoopDisk disk_{24};
  const std::string directory_ = disk_.path() + "/checkpoints";
  JobSpec job_;
  const TokenData data_;
};

TEST_F(DiskFaults, AFullDiskIsOneErrorAndWhatIsThereStays) {
  EXPECT_THAT(error_with([&] { disk_.fill(); }, [&] { fs::remove(disk_.path() + "/filler"); }),
              HasSubstr("checkpoint: "));
  EXPECT_THAT(steps_kept(), ::testing::ElementsAre("step-3", "step-1"));
}

TEST_F(DiskFaults, ADirectoryThatMayNotBeWrittenToAnyMoreIsOneErrorAndWhatIsThereStays) {
  EXPECT_THAT(error_with([&] { ASSERT_TRUE(LoopDisk::forbid(directory_)); },
                         [&] { ASSERT_TRUE(LoopDisk::allow(directory_)); }),
              HasSubstr("Operation not permitted"));
  EXPECT_THAT(steps_kept(), ::testing::ElementsAre("step-3", "step-1"));
}

TEST_F(DiskFaults, ADirectoryThatIsRemovedIsMadeAnew) {
  EXPECT_EQ(error_with([&] { fs::remove_all(directory_); }, [] {}), "");
  EXPECT_THAT(steps_kept(), ::testing::ElementsAre("step-3", "step-2"));
}

TEST_F(DiskFaults, ADiskThatHangsDoesNotStopTraining) {
  const std::vector<double> expected = undisturbed_losses(12);
  train([&](RankTrainer& trainer, bool first) {
    EXPECT_EQ(trainer.step().loss, expected[0]);
    EXPECT_EQ(save(trainer), "");
    if (first) {
      ASSERT_TRUE(disk_.freeze());
    }
    EXPECT_EQ(trainer.step().loss, expected[1]);
    trainer.save(directory_, 5);
    for (std::size_t i = 2; i < 12; ++i) EXPECT_EQ(trainer.step().loss, expected[i]);
    EXPECT_TRUE(trainer.saves().empty()) << "it cannot be written";
    // Longer than any sign of life between the ranks that wait for each other.
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    EXPECT_TRUE(trainer.saves().empty());
    if (first) {
      ASSERT_TRUE(disk_.thaw());
    }
    const std::vector<SaveResult> results = trainer.saves(/*wait=*/true);
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results.front().error, "");
  });
  EXPECT_THAT(steps_kept(), ::testing::ElementsAre("step-2", "step-1"));
}

// Ranks are lost while a disk hangs: those that are left are free at once, and nothing half written counts.
TEST_F(DiskFaults, ADiskThatHangsDoesNotHoldUpThoseWhoGoOn) {
  train([&](RankTrainer& trainer, bool first) {
    trainer.step();
    EXPECT_EQ(save(trainer), "");
    trainer.step();
    if (first) {
      ASSERT_TRUE(disk_.freeze());
    }
    trainer.step();
    trainer.save(directory_, 5);
    trainer.step();
    // The trainer goes while its save hangs; that it ends at all is the test.
  });
  EXPECT_TRUE(disk_.thaw());
  EXPECT_THAT(steps_kept(), ::testing::Contains("step-1"));
}

}  // namespace
}  // namespace sailor
