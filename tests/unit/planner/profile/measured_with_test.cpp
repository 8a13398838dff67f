#include "planner/profile/measured_with.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "planner/spec/document.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

MeasuredWith read_measured_with(const std::string& json) {
  const Document document = parse_json(json, "p.json");
  return read_measured_with(Field(document));
}

TEST(MeasuredWith, IsTextOrAMap) {
  EXPECT_EQ(read_measured_with("\"by hand\"").text(), "by hand");
  const std::string json =
      R"({"at":"2026-11-21T22:43:00Z","host":"n1","device":"a chip","driver":"550","libraries":"lib 1.2","ranks":2})";
  const MeasuredWith measured = read_measured_with(json);
  EXPECT_EQ(measured.text(), "2026-11-21T22:43:00Z, on n1, a chip, driver 550, lib 1.2, 2 ranks at once");
  EXPECT_EQ(to_json(measured).dump(), json);
}

TEST(MeasuredWith, WhatIsNoTimeIsRefused) {
  for (const char* bad : {R"({"at": "yesterday"})", R"({"at": "2026-11-21"})", R"({"when": "x"})"}) {
    EXPECT_THROW(read_measured_with(bad), InputError) << bad;
  }
}

TEST(MeasuredWith, AgeIsInDaysAndNothingWithoutATime) {
  MeasuredWith measured;
  EXPECT_EQ(age_days(measured, "2026-11-21T00:00:00Z"), 0);
  measured.at = "2026-11-19T12:00:00Z";
  EXPECT_DOUBLE_EQ(age_days(measured, "2026-11-21T00:00:00Z"), 1.5);
  EXPECT_EQ(utc_time(1795266180), "2026-11-21T13:03:00Z");
}

TEST(MeasuredWith, OnlyWhatBothSayCanDiffer) {
  MeasuredWith one, unknown;
  one.device = "chip";
  one.libraries = "lib 1";
  MeasuredWith other = one;
  other.host = "n2";
  EXPECT_TRUE(same_equipment(one, other));
  EXPECT_TRUE(same_equipment(one, unknown));
  other.libraries = "lib 2";
  EXPECT_FALSE(same_equipment(one, other));
}

}  // namespace
}  // namespace sailor
