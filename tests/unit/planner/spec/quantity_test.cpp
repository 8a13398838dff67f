#include "planner/spec/quantity.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

TEST(Quantity, BytesTakeBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("80GiB"), 80.0 * (1 << 30));
  EXPECT_EQ(parse_bytes("40 GB"), 40e9);
  EXPECT_EQ(parse_bytes("1.5MiB"), 1.5 * (1 << 20));
  EXPECT_EQ(parse_bytes("512"), 512);
  EXPECT_EQ(parse_bytes("7B"), 7);
  EXPECT_EQ(parse_bytes("2kB"), 2000);
  for (const char* bad :
       {"", "GiB", "80Gb", "80G", "80 XiB", "1e400GiB", "nan", "inf", "80GiBx", "--1B", "0x10"}) {
    EXPECT_FALSE(parse_bytes(bad)) << bad;
  }
}

TEST(Quantity, RatesTellBitsFromBytes) {
  EXPECT_EQ(parse_rate("400Gb/s"), 50e9);
  EXPECT_EQ(parse_rate("10 Gbit/s"), 1.25e9);
  EXPECT_EQ(parse_rate("1555GB/s"), 1555e9);
  EXPECT_EQ(parse_rate("1GiB/s"), 1024.0 * 1024 * 1024);
  EXPECT_EQ(parse_rate("100"), 100);
  EXPECT_FALSE(parse_rate("400Gb"));
  EXPECT_FALSE(parse_rate("400Gib/s"));
}

TEST(Quantity, DurationsTakeUnitsAndSlurmsForms) {
  EXPECT_EQ(parse_duration("12h"), 43200);
  EXPECT_EQ(parse_duration("90s"), 90);
  EXPECT_EQ(parse_duration("500ms"), 0.5);
  EXPECT_EQ(parse_duration("1h30m"), 5400);
  EXPECT_EQ(parse_duration("2"), 2);
  EXPECT_EQ(parse_duration("1-02:03:04"), 86400 + 2 * 3600 + 3 * 60 + 4);
  EXPECT_EQ(parse_duration("00:01:30"), 90);
  for (const char* bad : {"", "h", "12x", "1:99:00", "1h-30m", "1:2", "5 5", "-1:00:00"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
}

TEST(Quantity, MoneyIsDollars) {
  EXPECT_EQ(parse_money("1.2 USD"), 1.2);
  EXPECT_EQ(parse_money("$1.2"), 1.2);
  EXPECT_EQ(parse_money("0.01"), 0.01);
  EXPECT_FALSE(parse_money("1.2 EUR"));
}

TEST(Quantity, EnergyIsJoules) {
  EXPECT_EQ(parse_energy("1200"), 1200);
  EXPECT_EQ(parse_energy("50kJ"), 50e3);
  EXPECT_EQ(parse_energy("3 MJ"), 3e6);
  EXPECT_EQ(parse_energy("2GJ"), 2e9);
  EXPECT_EQ(parse_energy("0.5kWh"), 1.8e6);
  EXPECT_EQ(parse_energy("1Wh"), 3600);
  for (const char* wrong : {"", "kJ", "5kX", "5 kJ s", "nan"})
    EXPECT_EQ(parse_energy(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace sailor
