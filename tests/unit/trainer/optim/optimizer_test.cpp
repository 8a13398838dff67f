#include "trainer/optim/optimizer.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "planner/spec/error.h"
#include "trainer/optim/muon.h"

namespace sailor {
namespace {

constexpr int64_t kElements = 7;

OptimizerSlice make_slice(at::ScalarType dtype, bool decay, int64_t count = kElements) {
  const at::ScalarType gradient = dtype == at::kDouble ? at::kDouble : at::kFloat;
  return {"p",
          decay,
          0,
          count,
          (at::arange(1, count + 1, at::kDouble) / 4).to(dtype),
          at::zeros({count}, gradient)};
}

OptimizerSlice in_group(OptimizerSlice slice, double lr_scale, std::optional<double> weight_decay) {
  slice.lr_scale = lr_scale;
  slice.weight_decay = weight_decay;
  return slice;
}

double at_index(const at::Tensor& tensor, std::size_t i) {
  return tensor[static_cast<int64_t>(i)].item<double>();
}

at::Tensor gradient_of_step(int t) {
  return at::arange(-3, 4, at::kDouble) * t;
}

// A group is an optimizer of its own for its slices: with its rate, and with its decay for all of them.
TEST(Optimizers, UpdateSlicesOfAGroupWithItsRateAndDecay) {
  for (const char* name : {"adamw", "sgd"}) {
    for (const bool by_operators : {false, true}) {
      OptimizerSpec spec;
      spec.name = name;
      spec.weight_decay = 0.1;
      std::vector<OptimizerSlice> slices;
      for (const bool decay : {false, true}) {
        slices.push_back(make_slice(at::kDouble, decay));
        slices.push_back(in_group(make_slice(at::kDouble, decay), 0.5, std::nullopt));
        slices.push_back(in_group(make_slice(at::kDouble, decay), 1, 0.3));
        slices.push_back(in_group(make_slice(at::kDouble, decay), 0.25, 0.0));
      }
      const auto step = [&](Optimizer& optimizer, double lr) {
        by_operators ? optimizer.step_by_operators(lr, 1) : optimizer.step(lr, 1);
      };
      const auto grouped = make_optimizer(spec, slices);
      for (int t = 1; t <= 3; ++t) {
        for (const OptimizerSlice& slice : slices) at::Tensor(slice.gradient).copy_(gradient_of_step(t));
        step(*grouped, 0.01);
      }
      for (const OptimizerSlice& slice : slices) {
        spec.weight_decay = slice.weight_decay.value_or(slice.decay ? 0.1 : 0);
        const OptimizerSlice alone = make_slice(at::kDouble, true);
        const auto optimizer = make_optimizer(spec, {alone});
        for (int t = 1; t <= 3; ++t) {
          at::Tensor(alone.gradient).copy_(gradient_of_step(t));
          step(*optimizer, 0.01 * slice.lr_scale);
        }
        EXPECT_TRUE(at::allclose(slice.value, alone.value, 1e-14, 0))
            << name << " x" << slice.lr_scale << " " << slice.decay;
      }
    }
  }
}

TEST(AdamW, FollowsTheClosedFormElementByElement) {
  OptimizerSpec spec;
  spec.weight_decay = 0.1;
  spec.epsilon = 1e-6;
  for (const bool decay : {false, true}) {
    const OptimizerSlice slice = make_slice(at::kDouble, decay);
    const auto optimizer = make_optimizer(spec, {slice});
    std::vector<double> x(kElements), m(kElements), v(kElements);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i + 1) / 4;
    for (int t = 1; t <= 5; ++t) {
      const double lr = 0.01 / t, scale = t % 2 ? 1 : 0.25;
      slice.gradient.copy_(gradient_of_step(t));
      optimizer->step(lr, scale);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double g = scale * (static_cast<double>(i) - 3) * t;
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.999 * v[i] + 0.001 * g * g;
        if (decay) x[i] -= lr * spec.weight_decay * x[i];
        x[i] -= lr * (m[i] / (1 - std::pow(0.9, t))) /
                (std::sqrt(v[i] / (1 - std::pow(0.999, t))) + spec.epsilon);
        ASSERT_NEAR(at_index(slice.value, i), x[i], 1e-14) << "step " << t << " element " << i;
        ASSERT_NEAR(at_index(optimizer->state(0)[0].tensor, i), m[i], 1e-14);
      }
    }
    EXPECT_EQ(optimizer->steps_done(), 5);
  }
}

TEST(AdamW, TheFirstStepHasTheSizeOfTheLearningRateInEveryPrecision) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const OptimizerSlice slice = make_slice(dtype, true);
    const at::Tensor before = slice.value.to(at::kDouble).clone();
    const auto optimizer = make_optimizer({}, {slice});
    slice.gradient.fill_(123.0);
    optimizer->step(0.5, 1);
    EXPECT_TRUE(at::allclose(before - slice.value.to(at::kDouble), at::full_like(before, 0.5), 1e-5, 1e-6));
  }
}

TEST(Sgd, FollowsTheClosedFormWithAndWithoutMomentum) {
  for (const double momentum : {0.0, 0.8}) {
    for (const bool nesterov : {false, true}) {
      if (nesterov && momentum == 0) continue;
      OptimizerSpec spec;
      spec.name = "sgd";
      spec.weight_decay = 0.1;
      spec.momentum = momentum;
      spec.nesterov = nesterov;
      const OptimizerSlice slice = make_slice(at::kDouble, true);
      const auto optimizer = make_optimizer(spec, {slice});
      EXPECT_EQ(optimizer->state(0).size(), momentum > 0 ? 1u : 0u);
      std::vector<double> x(kElements), b(kElements);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i + 1) / 4;
      for (int t = 1; t <= 4; ++t) {
        slice.gradient.copy_(gradient_of_step(t));
        optimizer->step(0.02, 0.5);
        for (std::size_t i = 0; i < x.size(); ++i) {
          const double g = 0.5 * (static_cast<double>(i) - 3) * t + 0.1 * x[i];
          b[i] = momentum * b[i] + g;
          x[i] -= 0.02 * (nesterov ? g + momentum * b[i] : b[i]);
          ASSERT_NEAR(at_index(slice.value, i), x[i], 1e-14) << "momentum " << momentum << " step " << t;
        }
      }
    }
  }
}

// The caller puts whatever it likes in place of the direction; here it stays as it is.
TEST(Muon, UpdatesLinearWeightsByTheirDirectionAndTheRestAsAdamW) {
  for (const bool nesterov : {false, true}) {
    OptimizerSpec spec;
    spec.name = "muon";
    spec.weight_decay = 0.1;
    spec.momentum = 0.8;
    spec.nesterov = nesterov;
    OptimizerSlice linear = make_slice(at::kDouble, true);
    linear.linear = true;
    const OptimizerSlice other = make_slice(at::kDouble, false), by_adamw = make_slice(at::kDouble, false);
    Muon muon(spec, {linear, other});
    const auto adamw = make_optimizer({}, {by_adamw});
    ASSERT_EQ(muon.state(0).size(), 1u);
    EXPECT_EQ(muon.state(0)[0].name, "momentum");
    ASSERT_EQ(muon.state(1).size(), 2u);
    std::vector<double> x(kElements), b(kElements);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i + 1) / 4;
    for (int t = 1; t <= 4; ++t) {
      for (const at::Tensor& gradient : {linear.gradient, other.gradient, by_adamw.gradient})
        at::Tensor(gradient).copy_(gradient_of_step(t));
      const at::Tensor before = muon.state(0)[0].tensor.clone();
      muon.start(0.5);
      EXPECT_TRUE(at::equal(muon.state(0)[0].tensor, before)) << "a step that is given up leaves no trace";
      muon.step(0.02, 0.5);
      adamw->step(0.02, 0.5);
      EXPECT_FALSE(muon.direction(1).defined());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double g = 0.5 * (static_cast<double>(i) - 3) * t;
        b[i] = 0.8 * b[i] + 0.2 * g;
        const double direction = nesterov ? 0.8 * b[i] + 0.2 * g : b[i];
        x[i] = x[i] * (1 - 0.02 * 0.1) - 0.02 * direction;
        ASSERT_NEAR(at_index(muon.direction(0), i), direction, 1e-14);
        ASSERT_NEAR(at_index(linear.value, i), x[i], 1e-14) << "step " << t << " element " << i;
      }
      EXPECT_TRUE(at::equal(other.value, by_adamw.value));
    }
  }
}

// Steps that are far below the spacing of 16-bit values add up in the master copy.
TEST(Optimizer, A16BitValueIsItsMasterCopyRounded) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    OptimizerSpec spec;
    spec.name = "sgd";
    const OptimizerSlice low = make_slice(type, true, 1000), high = make_slice(at::kFloat, true, 1000);
    high.value.copy_(low.value);
    const auto a = make_optimizer(spec, {low}), b = make_optimizer(spec, {high});
    low.gradient.copy_(at::linspace(-1, 1, 1000));
    high.gradient.copy_(low.gradient);
    const at::Tensor before = low.value.clone();
    for (int i = 0; i < 50; ++i) {
      a->step(1e-3, 1);
      b->step(1e-3, 1);
    }
    EXPECT_EQ(a->state(0).back().name, "master");
    EXPECT_TRUE(at::equal(a->state(0).back().tensor, high.value));
    EXPECT_TRUE(at::equal(low.value, high.value.to(type)));
    EXPECT_FALSE(at::equal(low.value, before));

    low.value.fill_(3);
    a->values_were_loaded();
    EXPECT_TRUE(at::equal(a->state(0).back().tensor, at::full({1000}, 3.0f)));
  }
}

// ZeRO-1 cuts parameters anywhere, and threads cut them again.
TEST(Optimizer, AnyCutAndAnyNumberOfThreadsGiveTheSameBits) {
  constexpr int64_t kCount = 200'003;
  for (const char* name : {"adamw", "muon", "sgd"}) {
    for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
      OptimizerSpec spec;
      spec.name = name;
      spec.weight_decay = 0.1;
      if (spec.name != "adamw") spec.momentum = 0.9;
      auto run = [&](const std::vector<int64_t>& cuts, int threads) {
        at::set_num_threads(threads);
        const OptimizerSlice whole = make_slice(dtype, true, kCount);
        std::vector<OptimizerSlice> slices;
        for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
          const int64_t count = cuts[i + 1] - cuts[i];
          slices.push_back({"p", true, cuts[i], count, whole.value.narrow(0, cuts[i], count),
                            whole.gradient.narrow(0, cuts[i], count), /*linear=*/true});
        }
        const auto optimizer = make_optimizer(spec, slices);
        for (int t = 1; t <= 3; ++t) {
          whole.gradient.copy_((at::arange(kCount, at::kDouble) * 0.7 * t).sin());
          if (auto* const muon = dynamic_cast<Muon*>(optimizer.get())) muon->start(0.3);
          optimizer->step(1e-2, 0.3);
        }
        return whole.value;
      };
      const int threads = at::get_num_threads();
      const at::Tensor one = run({0, kCount}, 1);
      EXPECT_TRUE(at::equal(one, run({0, 1, 100'000, 100'007, kCount}, 3))) << name;
      at::set_num_threads(threads);
    }
  }
}

TEST(Optimizer, WhatDoesNotFitIsAnErrorThatNamesTheParameter) {
  auto error_of = [](const OptimizerSlice& slice) -> std::string {
    try {
      make_optimizer({}, {slice});
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  OptimizerSlice slice = make_slice(at::kFloat, false);
  slice.gradient = at::Tensor();
  EXPECT_THAT(error_of(slice), ::testing::HasSubstr("p: no value or no gradient"));
  slice = make_slice(at::kFloat, false);
  slice.count = 6;
  EXPECT_THAT(error_of(slice), ::testing::HasSubstr("not as long as the slice"));
  slice = make_slice(at::kFloat, false);
  slice.gradient = slice.gradient.to(at::kDouble);
  EXPECT_THAT(error_of(slice), ::testing::HasSubstr("types of value and gradient"));
  OptimizerSpec spec;
  spec.name = "lion";
  EXPECT_THROW(make_optimizer(spec, {}), InputError);
}

TEST(Optimizer, KeepsAnAverageOfItsValuesOrTheirMasters) {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const char* name : {"adamw", "sgd"}) {
      OptimizerSpec spec;
      spec.name = name;
      const OptimizerSlice slice = make_slice(dtype, true);
      const auto optimizer = make_optimizer(spec, {slice});
      optimizer->keep_average();
      EXPECT_EQ(optimizer->state(0).back().name, kAverageState);
      const auto state = [&](const char* wanted) {
        for (const OptimizerState& one : optimizer->state(0))
          if (one.name == wanted) return one.tensor;
        return slice.value;
      };
      const bool narrow = dtype == at::kBFloat16 || dtype == at::kHalf;
      const at::Tensor exact = narrow ? state(kMasterState) : slice.value, average = state(kAverageState);
      EXPECT_TRUE(at::equal(average, exact)) << "starts from the values";
      at::Tensor expected = average.clone();
      for (int t = 1; t <= 4; ++t) {
        at::Tensor(slice.gradient).copy_(gradient_of_step(t));
        optimizer->step(0.1, 1);
        optimizer->update_average(0.75);
        expected = 0.75 * expected + 0.25 * exact;
      }
      EXPECT_TRUE(at::allclose(average, expected, 1e-6, 1e-7)) << name << " " << at::toString(dtype);
      EXPECT_FALSE(at::allclose(average, exact, 1e-3, 1e-3));

      const at::Tensor value = slice.value.clone(), kept = average.clone();
      optimizer->exchange_average();
      EXPECT_TRUE(at::equal(slice.value, kept.to(dtype)));
      optimizer->exchange_average();
      EXPECT_TRUE(at::equal(slice.value, value)) << name << " " << at::toString(dtype);
      EXPECT_TRUE(at::equal(average, kept));
      optimizer->values_were_loaded();
      EXPECT_TRUE(at::equal(average, value.to(average.scalar_type())));
    }
  }
}

// Counts what it gives of its host's memory.
class CountingDevice : public Device {
 public:
  std::shared_ptr<char> host_memory(std::size_t bytes) override {
    *held_ += static_cast<int64_t>(bytes);
    std::shared_ptr<char> memory = Device::host_memory(bytes);
    std::fill_n(memory.get(), bytes, '\xff');  // not cleared
    return {memory.get(), [memory, bytes, held = held_](char*) { *held -= static_cast<int64_t>(bytes); }};
  }
  int64_t held_bytes() const { return *held_; }

 private:
  std::shared_ptr<int64_t> held_ = std::make_shared<int64_t>(0);
};

TEST(Optimizers, OffloadedStatesAreInTheHostsMemoryWithTheSameBits) {
  for (const char* name : {"adamw", "sgd"}) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
      for (const bool by_operators : {false, true}) {
        OptimizerSpec spec;
        spec.name = name;
        spec.momentum = 0.9;
        CountingDevice device;
        const OptimizerSlice slice = make_slice(type, true), like = make_slice(type, true);
        auto optimizer = make_optimizer(spec, {slice}, &device);
        const auto plain = make_optimizer(spec, {like});
        EXPECT_EQ(plain->offloaded_bytes(), 0);
        const int64_t element = type == at::kDouble ? 8 : 4;
        int64_t states = std::string(name) == "adamw" ? 2 : 1;
        if (at::elementSize(type) == 2) ++states;
        EXPECT_EQ(device.held_bytes(), states * element * kElements);
        EXPECT_EQ(optimizer->offloaded_bytes(), states * element * kElements);
        for (Optimizer* one : {optimizer.get(), plain.get()}) {
          one->keep_average();
          for (int t = 1; t <= 3; ++t) {
            at::Tensor(one->slices()[0].gradient).copy_(gradient_of_step(t));
            by_operators ? one->step_by_operators(0.01, 0.5) : one->step(0.01, 0.5);
            one->update_average(0.9);
          }
        }
        EXPECT_EQ(device.held_bytes(), (states + 1) * element * kElements);
        EXPECT_EQ(optimizer->offloaded_bytes(), (states + 2) * element * kElements) << "an average: two";
        EXPECT_TRUE(at::equal(slice.value, like.value)) << name << " " << type;
        for (std::size_t i = 0; i < plain->state(0).size(); ++i)
          EXPECT_TRUE(at::equal(optimizer->state(0)[i].tensor, plain->state(0)[i].tensor));
        optimizer.reset();
        EXPECT_EQ(device.held_bytes(), 0);
      }
    }
  }
}

}  // namespace
}  // namespace sailor
