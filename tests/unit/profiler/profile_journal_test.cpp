#include "profiler/profile_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "planner/spec/text_file.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

class Journal : public ::testing::Test {
 protected:
  Journal() : directory_(::testing::TempDir() + "sailor-journal-" + std::to_string(getpid())) {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    equipment_.host = "n1";
    equipment_.device = "chip";
    equipment_.ranks = 2;
  }
  ~Journal() override { fs::remove_all(directory_); }

  std::string profile() const { return directory_ + "/model.cpu.json"; }

  static StackBench::ByKind round(double unit_s) {
    StackBench::ByKind kinds(3);
    for (LayerMeasurement& m : kinds) {
      m.times = {.forward_s = unit_s, .backward_s = 2 * unit_s, .update_s = unit_s / 3};
      m.samples = 5;
      m.outliers = 1;
      m.relative_error = 0.01;
    }
    return kinds;
  }

  std::string directory_;
  MeasuredWith equipment_;
};

TEST_F(Journal, WhatWasMeasuredBeforeAnInterruptionIsThereAgainToTheLastBit) {
  {
    ProfileJournal journal(profile(), equipment_, 3);
    EXPECT_TRUE(journal.rounds().empty());
    journal.add(1, 4, round(0.1));
    journal.add(1, 4, round(0.3));
    journal.add(2, 4, round(0.7));
  }
  equipment_.at = "2026-11-21T22:43:00Z";  // later, but the same conditions
  const ProfileJournal again(profile(), equipment_, 3);
  ASSERT_EQ(again.rounds().size(), 2u);
  const auto& rounds = again.rounds().at({1, 4});
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_EQ(rounds[1][2].times.update_s, 0.3 / 3);
  EXPECT_EQ(rounds[1][0].samples, 5);
  EXPECT_EQ(rounds[1][0].outliers, 1);
}

TEST_F(Journal, HalfALineIsIgnoredAndNothingIsAppendedToIt) {
  { ProfileJournal(profile(), equipment_, 3).add(1, 4, round(0.1)); }
  std::ofstream(ProfileJournal::path_of(profile()), std::ios::app) << R"({"tp": 1, "microba)";
  { ProfileJournal(profile(), equipment_, 3).add(1, 8, round(0.2)); }
  const ProfileJournal again(profile(), equipment_, 3);
  EXPECT_EQ(again.rounds().size(), 2u);
  EXPECT_TRUE(again.rounds().contains({1, 8}));
}

// Room for the file's first line, but not for all of it.
TEST_F(Journal, ADiskThatFillsWhileTheNextRunBeginsCostsNothing) {
  {
    ProfileJournal journal(profile(), equipment_, 3);
    for (int i = 1; i <= 5; ++i) journal.add(1, i, round(0.1));
  }
  const std::string before = read_text_file(ProfileJournal::path_of(profile()));
  rlimit usual{};
  getrlimit(RLIMIT_FSIZE, &usual);
  const rlimit little{.rlim_cur = before.size() / 2, .rlim_max = usual.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &little);
  EXPECT_THROW(ProfileJournal(profile(), equipment_, 3), std::runtime_error);
  setrlimit(RLIMIT_FSIZE, &usual);
  EXPECT_EQ(read_text_file(ProfileJournal::path_of(profile())), before);
  EXPECT_EQ(ProfileJournal(profile(), equipment_, 3).rounds().size(), 5u);
}

TEST_F(Journal, OtherConditionsBeginAnew) {
  { ProfileJournal(profile(), equipment_, 3).add(1, 4, round(0.1)); }
  equipment_.libraries = "another version";
  EXPECT_TRUE(ProfileJournal(profile(), equipment_, 3).rounds().empty());
}

TEST_F(Journal, OfOtherKindsOfLayersBeginsAnew) {
  { ProfileJournal(profile(), equipment_, 3).add(1, 4, round(0.1)); }
  EXPECT_TRUE(ProfileJournal(profile(), equipment_, 4).rounds().empty());
}

TEST_F(Journal, IsGoneWhenTheProfileIsComplete) {
  ProfileJournal journal(profile(), equipment_, 3);
  EXPECT_TRUE(fs::exists(ProfileJournal::path_of(profile())));
  EXPECT_EQ(fs::path(ProfileJournal::path_of(profile())).extension(), ".unfinished")
      << "the planner reads every .json of the directory";
  journal.finish();
  EXPECT_FALSE(fs::exists(ProfileJournal::path_of(profile())));
}

TEST_F(Journal, AFileThatVanishedIsAnErrorWithItsName) {
  ProfileJournal journal(profile(), equipment_, 3);
  fs::remove_all(directory_);
  try {
    journal.add(1, 4, round(0.1));
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("model.cpu.json.unfinished"));
  }
}

}  // namespace
}  // namespace sailor
