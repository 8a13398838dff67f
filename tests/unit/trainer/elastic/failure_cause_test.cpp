#include "trainer/elastic/failure_cause.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

TEST(FailureCause, WhatExplainsItselfBeatsALostNodeAndThatBeatsALostConnection) {
  FailureCause cause;
  EXPECT_FALSE(cause.text());
  cause.echo(0, 1, "rank 0: connection lost");
  EXPECT_EQ(cause.text(), "rank 0: connection lost");
  cause.node_lost("n1 is gone");
  cause.node_lost("n2 is gone");
  EXPECT_EQ(cause.text(), "n1 is gone");
  cause.fail("rank 1 was killed");
  cause.fail("rank 2 was killed");
  EXPECT_EQ(cause.text(), "rank 1 was killed");
}

TEST(FailureCause, OfRanksThatWaitForOneAnotherTheSilentOneIsToBlame) {
  FailureCause cause;
  const auto waits = [&](int rank, int peer) {
    cause.echo(rank, peer, std::to_string(rank) + " waits for " + std::to_string(peer));
  };
  waits(3, 0);
  EXPECT_EQ(cause.text(), "3 waits for 0");
  waits(0, 2);
  EXPECT_EQ(cause.text(), "0 waits for 2");
  waits(1, 0);
  EXPECT_EQ(cause.text(), "0 waits for 2");
  waits(2, 3);  // nobody is silent: who said it first
  EXPECT_EQ(cause.text(), "3 waits for 0");
}

TEST(FailureCause, AnEchoWaitsForItsCauseAndNotForEver) {
  FailureCause cause;
  EXPECT_FALSE(cause.decided(100)) << "nothing went wrong";
  cause.echo(0, 1, "rank 0: connection lost");
  EXPECT_FALSE(cause.decided(200));
  EXPECT_FALSE(cause.decided(201.9));
  EXPECT_TRUE(cause.decided(202.1));
  FailureCause known;
  known.fail("rank 1 was killed");
  EXPECT_TRUE(known.decided(0));
}

TEST(FailureCause, HowRanksEndThatWereToldToSaysNothing) {
  FailureCause cause;
  cause.echo(0, 1, "rank 0: connection lost");
  cause.close();
  cause.fail("rank 0 ended with exit code 1");
  cause.node_lost("n1 is gone");
  EXPECT_EQ(cause.text(), "rank 0: connection lost");
  FailureCause well;
  well.close();
  well.fail("rank 0 ended with exit code 1");
  EXPECT_FALSE(well.text());
}

}  // namespace
}  // namespace sailor
