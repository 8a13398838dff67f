#include "spank_plugin/slurm/billing.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

const BilledNode kNode{64, 64 * 1024, {{"gpu", 4}, {"gpu:a100", 4}}};

TEST(Billing, WeighsWhatTheJobGets) {
  EXPECT_DOUBLE_EQ(billing_units("CPU=1.0,Mem=0.25G,GRES/gpu=2.0", kNode, false), 64 + 16 + 8);
  EXPECT_DOUBLE_EQ(billing_units("cpu=0.5,gres/gpu:a100=3,gres/gpu:v100=7", kNode, false), 32 + 12);
  EXPECT_DOUBLE_EQ(billing_units("Node=5,license/x=9", kNode, false), 5);
}

TEST(Billing, MemoryHasTheUnitOfItsWeightElseMegabytes) {
  EXPECT_DOUBLE_EQ(billing_units("Mem=0.5", kNode, false), 32 * 1024);
  EXPECT_DOUBLE_EQ(billing_units("Mem=0.5M", kNode, false), 32 * 1024);
  EXPECT_DOUBLE_EQ(billing_units("Mem=1K", kNode, false), 64 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(billing_units("Mem=16T", kNode, false), 1);
}

TEST(Billing, WithMaxTresTheLargestCounts) {
  EXPECT_DOUBLE_EQ(billing_units("CPU=1.0,Mem=0.25G,GRES/gpu=2.0", kNode, true), 64);
  EXPECT_DOUBLE_EQ(billing_units("CPU=1.0,GRES/gpu=20", kNode, true), 80);
}

TEST(Billing, WithoutWeightsCpusCount) {
  EXPECT_DOUBLE_EQ(billing_units("", kNode, false), 64);
}

}  // namespace
}  // namespace sailor
