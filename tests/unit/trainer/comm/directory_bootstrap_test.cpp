#include "trainer/comm/directory_bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "planner/process/scratch_directory.h"

namespace sailor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(const auto& call) {
  try {
    call();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

TEST(DirectoryBootstrap, AllRanksGetAllCardsAndOneSecret) {
  const ScratchDirectory directory;
  std::vector<BootstrapResult> results(3);
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 3; ++rank)
      ranks.emplace_back([&, rank] {
        const std::string card = rank == 1 ? "" : "card of\n" + std::to_string(rank);
        results[static_cast<size_t>(rank)] =
            directory_bootstrap({.directory = directory.path(), .rank = rank, .ranks = 3}, card);
      });
  }
  for (const BootstrapResult& result : results) {
    EXPECT_EQ(result.size, 3);
    EXPECT_THAT(result.cards, ElementsAre("card of\n0", "", "card of\n2"));
    EXPECT_EQ(result.secret, results[0].secret);
  }
  EXPECT_NE(results[0].secret, JobSecret{});
  EXPECT_EQ(results[2].rank, 2);
}

TEST(DirectoryBootstrap, OneRankIsEnough) {
  const ScratchDirectory directory;
  EXPECT_THAT(directory_bootstrap({.directory = directory.path()}, "alone").cards, ElementsAre("alone"));
}

TEST(DirectoryBootstrap, ServesOneStart) {
  const ScratchDirectory directory;
  directory_bootstrap({.directory = directory.path()}, "first");
  EXPECT_THAT(error_of([&] { directory_bootstrap({.directory = directory.path()}, "second"); }),
              HasSubstr("earlier start"));
}

TEST(DirectoryBootstrap, ARankThatDoesNotComeIsNamed) {
  const ScratchDirectory directory;
  EXPECT_THAT(error_of([&] {
                directory_bootstrap(
                    {.directory = directory.path(), .rank = 0, .ranks = 2, .deadline_s = 0.05}, "here");
              }),
              HasSubstr("rank 1 of 2 did not come"));
}

TEST(DirectoryBootstrap, WhatOthersCanReadIsRefused) {
  const ScratchDirectory directory;
  for (const std::string& place : {directory.path() + "/none", directory.path() + "/file"}) {
    if (place.ends_with("file")) std::ofstream(place) << "x";
    EXPECT_THAT(error_of([&] { directory_bootstrap({.directory = place}, ""); }), HasSubstr(place));
  }
  chmod(directory.path().c_str(), 0750);
  EXPECT_THAT(error_of([&] { directory_bootstrap({.directory = directory.path()}, ""); }),
              HasSubstr("chmod 700"));
}

class RendezvousFromEnvironment : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"SAILOR_RENDEZVOUS", "SAILOR_RANK", "SAILOR_RANKS"}) unsetenv(name);
  }
  static void set(const char* directory, const char* rank, const char* ranks) {
    setenv("SAILOR_RENDEZVOUS", directory, 1);
    setenv("SAILOR_RANK", rank, 1);
    setenv("SAILOR_RANKS", ranks, 1);
  }
};

TEST_F(RendezvousFromEnvironment, IsWhatTheVariablesSay) {
  EXPECT_FALSE(rendezvous_from_environment());
  set("", "x", "y");
  EXPECT_FALSE(rendezvous_from_environment());
  set("/x", "1", "2");
  const auto rendezvous = rendezvous_from_environment();
  ASSERT_TRUE(rendezvous);
  EXPECT_EQ(rendezvous->directory, "/x");
  EXPECT_EQ(rendezvous->rank, 1);
  EXPECT_EQ(rendezvous->ranks, 2);
}

TEST_F(RendezvousFromEnvironment, WrongNumbersAreRefused) {
  set("/x", "2", "2");
  EXPECT_THAT(error_of(rendezvous_from_environment), HasSubstr("SAILOR_RANK=2 is not below SAILOR_RANKS=2"));
  for (const char* wrong : {"", "-1", "1x", "one", "99999999999"}) {
    set("/x", wrong, "2");
    EXPECT_THAT(error_of(rendezvous_from_environment), AllOf(HasSubstr("SAILOR_RANK "), HasSubstr(wrong)));
  }
  unsetenv("SAILOR_RANK");
  EXPECT_THAT(error_of(rendezvous_from_environment), HasSubstr("is not set"));
}

}  // namespace
}  // namespace sailor
