// The keeper's command line.
#include "trainer/elastic/helper_job.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

TEST(HelperJob, TheKeepersCommandLineSaysWhatIsAsked) {
  HelperRequest request{.main_job = "17", .node = "n4"};
  request.end_s = 99;
  request.account = "us";
  const auto command = keeper_command("/x/sailor-agent", request);
  const HelperRequest back = parse_keeper({command.begin() + 2, command.end()});
  EXPECT_EQ(back.main_job, "17");
  EXPECT_EQ(back.node, "n4");
  EXPECT_EQ(back.end_s, 99);
  EXPECT_EQ(back.account, "us");
  EXPECT_EQ(back.partition, "");
  EXPECT_THROW(parse_keeper({"17"}), std::runtime_error);
}

}  // namespace
}  // namespace sailor
