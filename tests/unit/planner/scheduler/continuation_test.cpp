#include "planner/scheduler/continuation.h"

#include <gmock/gmock.h>

#include <stdexcept>

namespace sailor {
namespace {

using testing::ElementsAre;

TEST(Continuation, ASubmissionIsReadAsItWasSent) {
  const Resubmission sent{.options = {{"time", "1:00"}, {"exclusive"}},
                          .arguments = {"--fast", "two words"},
                          .environment = {{"SBATCH_ACCOUNT", "physics"}}};
  const Resubmission read = parse_resubmission(to_json(sent));
  EXPECT_EQ(read.options, sent.options);
  EXPECT_EQ(read.arguments, sent.arguments);
  EXPECT_EQ(read.environment, sent.environment);
  const PreviousPart part =
      parse_previous_part(to_json(PreviousPart{"12", "/home/u/job.yaml", "/home/u/run"}));
  EXPECT_EQ(part.job, "12");
  EXPECT_EQ(part.spec, "/home/u/job.yaml");
  EXPECT_EQ(part.run_directory, "/home/u/run");
}

TEST(Continuation, DamageIsAnError) {
  for (const char* text : {"", "[]", "{}", R"({"options": [["time"]], "arguments": [], "environment": {}})"})
    EXPECT_THROW(parse_resubmission(text), std::runtime_error) << text;
  EXPECT_THROW(parse_previous_part(R"({"job": 12})"), std::runtime_error);
}

TEST(Continuation, WhatConcernsTheFirstPartIsLeftOut) {
  EXPECT_THAT(options_of_every_part({{"begin", "16:00"},
                                     {"time", "60"},
                                     {"hold"},
                                     {"sailor-fresh"},
                                     {"sailor-max-gpus", "A=4"},
                                     {"dependency", "afterok:3"},
                                     {"wait"},
                                     {"wrap", "sailor run job.yaml"}}),
              ElementsAre(GivenOption{"time", "60"}, GivenOption{"sailor-max-gpus", "A=4"}));
}

}  // namespace
}  // namespace sailor
