#include "trainer/comm/nccl/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sailor {
namespace {

Doing sum(uint64_t collective, uint64_t count) {
  return {.operation = "all_reduce",
          .collective = collective,
          .count = count,
          .type = ElementType::f32,
          .to_all = true};
}

TEST(Verdict, WhoSaysNothingIsBlamedBeforeWhoIsElsewhere) {
  const Answers answers = {std::nullopt, sum(4, 8), std::nullopt, sum(5, 8)};
  const Verdict verdict = judge_timeout(sum(5, 8), {1, 2, 3}, answers, "2.0 s");
  EXPECT_EQ(verdict.rank, 2);
  EXPECT_EQ(verdict.reason,
            "no answer within 2.0 s: this rank is in all_reduce of 8 f32 (collective 5), member 1 is in "
            "all_reduce of 8 f32 (collective 4), member 2 does not say what it is in");
}

TEST(Verdict, WhoIsInAnotherOperationIsBlamed) {
  for (const Doing& theirs : {sum(5, 9), sum(6, 8), Doing{.collective = 4}}) {
    const Verdict verdict = judge_timeout(sum(5, 8), {1, 2}, {std::nullopt, sum(5, 8), theirs}, "2.0 s");
    EXPECT_EQ(verdict.rank, 2);
    EXPECT_THAT(verdict.reason, ::testing::HasSubstr("member 2 is " + to_string(theirs)));
  }
}

TEST(Verdict, WhoIsStuckIsBlamedAlthoughItIsInTheSameOperation) {
  Doing stuck = sum(5, 8);
  stuck.stuck = true;
  EXPECT_EQ(judge_timeout(sum(5, 8), {1, 2}, {std::nullopt, sum(5, 8), stuck}, "2.0 s").rank, 2);
  // It can only blame itself.
  const Verdict own = judge_timeout(stuck, {1}, {sum(5, 8), sum(5, 8)}, "2.0 s");
  EXPECT_EQ(own.rank, -1);
  EXPECT_THAT(own.reason, ::testing::HasSubstr("inside a call of NCCL that does not return"));
}

TEST(Verdict, MessagesFitAnyOperationOfTheOtherSide) {
  const Doing receive{.operation = "recv", .collective = 3, .count = 4, .type = ElementType::f32};
  const Doing send{.operation = "send", .collective = 7, .count = 4, .type = ElementType::f32};
  EXPECT_EQ(judge_timeout(receive, {0}, {send, std::nullopt}, "1.0 s").rank, -1);
  EXPECT_EQ(judge_timeout(receive, {0}, {Doing{.collective = 3}, std::nullopt}, "1.0 s").rank, 0);
}

}  // namespace
}  // namespace sailor
