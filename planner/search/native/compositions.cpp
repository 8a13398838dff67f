#include "planner/search/native/compositions.h"

#include <algorithm>
#include <cmath>

namespace sailor::native {
namespace {

constexpr double kLayersRounding = 1e-9;

class Composing {
 public:
  Composing(Estimates& estimates, const std::vector<int>& pools, const TemplateShape& of, Zero zero,
            const CompositionOptions& options)
      : space_(estimates.space()), of_(of), layers_(space_.layers()) {
    for (const int p : pools) {
      const SpacePool& pool = space_.pools[static_cast<size_t>(p)];
      Supply supply;
      supply.gpus = pool.gpus / of.pipelines;
      for (const int option : pool.options) {
        const SpaceOption& is = space_.options[static_cast<size_t>(option)];
        if (is.shape.gpus() > supply.gpus || !space_.has_times(option, of.microbatch)) continue;
        if (of.recompute != Recompute::none && !space_.can_recompute(option, of.recompute)) continue;
        Use use;
        use.option = option;
        use.gpus = is.shape.gpus();
        use.layer_s = estimates.layer_s(option, of.microbatch, of.recompute);
        const double model_layers = estimates.model_s(option, of.microbatch, of.recompute) / use.layer_s;
        wanted_ = std::max(wanted_, (model_layers - 0.5) / of.interleave);
        const double layer_bytes = estimates.model_bytes(zero, of.pipelines) / layers_;
        use.most_layers = std::max(1.0, std::floor(options.memory * is.shape.gpus() *
                                                   static_cast<double>(space_.kinds[is.kind].capacity_bytes) /
                                                   layer_bytes / of.interleave));
        supply.uses.push_back(use);
      }
      if (!supply.uses.empty()) supplies_.push_back(std::move(supply));
    }
  }

  bool possible() const { return !supplies_.empty(); }

  // Fills all pools with stages that take no longer; returns whether they hold the model.
  bool compose(double most_s) {
    double total = 0;
    for (Supply& supply : supplies_) {
      for (Use& use : supply.uses) {
        use.layers = std::min(use.most_layers, std::floor(most_s / use.layer_s * (1 + kLayersRounding)));
        use.stages = 0;
      }
      // Most layers per GPU first, of equals the fewest stages.
      std::sort(supply.uses.begin(), supply.uses.end(), [](const Use& a, const Use& b) {
        const double rate_a = a.layers / a.gpus, rate_b = b.layers / b.gpus;
        return rate_a != rate_b ? rate_a > rate_b : a.gpus > b.gpus;
      });
      int left = supply.gpus;
      for (Use& use : supply.uses) {
        if (use.layers < 1) continue;
        use.stages = std::min(left / use.gpus, layers_);
        left -= use.stages * use.gpus;
        total += use.stages * use.layers;
      }
    }
    if (total < wanted_) return false;
    drop_surplus(total);
    stages_ = 0;
    for (const Supply& supply : supplies_)
      for (const Use& use : supply.uses) stages_ += use.stages;
    return stages_ * of_.interleave <= layers_;
  }

  TemplateShape shape() const {
    TemplateShape out = of_;
    out.num_parts = 0;
    for (const Supply& supply : supplies_)
      for (const Use& use : supply.uses)
        if (use.stages > 0 && out.num_parts < TemplateShape::kMostParts)
          out.parts[out.num_parts++] = {use.option, use.stages};
    return out;
  }
  double longest_layer_s() const {
    double longest_s = 0;
    for (const Supply& supply : supplies_)
      for (const Use& use : supply.uses) longest_s = std::max(longest_s, use.layer_s);
    return longest_s;
  }
  double wanted() const { return wanted_; }

 private:
  // Stages of an option in a pipeline.
  struct Use {
    int option = 0, gpus = 1;
    double layer_s = 0, most_layers = 0;
    double layers = 0;  // of a stage
    int stages = 0;
  };
  struct Supply {
    int gpus = 0;  // of a pipeline
    std::vector<Use> uses;
  };

  // Removes stages with the fewest layers while the others hold the model.
  void drop_surplus(double total) {
    while (true) {
      Use* least = nullptr;
      for (Supply& supply : supplies_)
        for (Use& use : supply.uses)
          if (use.stages > 0 && (least == nullptr || use.layers < least->layers)) least = &use;
      if (least == nullptr || total - least->layers < wanted_) return;
      const auto dropped =
          std::max(1, std::min(least->stages, static_cast<int>((total - wanted_) / least->layers)));
      least->stages -= dropped;
      total -= dropped * least->layers;
    }
  }

  const Space& space_;
  const TemplateShape& of_;
  const int layers_;
  std::vector<Supply> supplies_;
  double wanted_ = 0;  // layers of a chunk of every group together
  int stages_ = 0;
};

}  // namespace

std::vector<TemplateShape> compositions(Estimates& estimates, const std::vector<int>& pools,
                                        const TemplateShape& of, Zero zero, double most_s,
                                        const CompositionOptions& options) {
  std::vector<TemplateShape> out;
  Composing composing(estimates, pools, of, zero, options);
  if (!composing.possible()) return out;
  double low_s = 0, high_s = std::min(most_s, composing.longest_layer_s() * (composing.wanted() + 1));
  if (!composing.compose(high_s)) return out;
  for (int i = 0; i < options.bisections; ++i) {
    const double middle_s = (low_s + high_s) / 2;
    (composing.compose(middle_s) ? high_s : low_s) = middle_s;
  }
  for (const double slack : options.slacks) {
    if (!composing.compose(slack * high_s)) continue;
    TemplateShape shape = composing.shape();
    const bool known = std::any_of(out.begin(), out.end(), [&](const TemplateShape& other) {
      return std::equal(shape.parts.begin(), shape.parts.begin() + static_cast<ptrdiff_t>(shape.num_parts),
                        other.parts.begin(), other.parts.begin() + static_cast<ptrdiff_t>(other.num_parts));
    });
    if (!known && shape.num_parts > 0) out.push_back(shape);
  }
  return out;
}

}  // namespace sailor::native
