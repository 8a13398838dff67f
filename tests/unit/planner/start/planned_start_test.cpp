// Starts and ends as text.
#include "planner/start/planned_start.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace sailor {
namespace {

TEST(PlannedStart, TimesAreOfTheClockOrDurations) {
  setenv("TZ", "UTC", 1);
  tzset();
  const int64_t noon = 1'700'049'600;  // Wednesday, 2023-11-15 12:00
  EXPECT_EQ(time_text(1200, {}), "20 min");
  EXPECT_EQ(time_text(1200, noon), "12:20");
  EXPECT_EQ(time_text(1200.5, noon), "12:20");
  EXPECT_EQ(time_text(24 * 3600, noon), "Thu 12:00");
  EXPECT_EQ(time_text(8 * 86400, noon), "2023-11-23 12:00");
}

TEST(PlannedStart, OnlyTheSchedulersStartIsWithoutMark) {
  EXPECT_EQ(start_text({0, StartSource::free_now}, {}), "now");
  EXPECT_EQ(start_text({1200, StartSource::scheduler}, {}), "20 min");
  EXPECT_EQ(start_text({1200, StartSource::limits}, {}), "~20 min");
}

}  // namespace
}  // namespace sailor
