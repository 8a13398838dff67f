#include "profiler/layer_bench.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "profiler/copying_communicator.h"
#include "profiler/memory_meter.h"
#include "trainer/model/element_types.h"
#include "trainer/model/layer.h"
#include "trainer/model/registry.h"
#include "trainer/model/torch_device.h"
#include "trainer/parallel/gradient_buffer.h"

namespace sailor {

struct LayerBench::State {
  ModelSpec model;
  LayerKind kind;
  at::ScalarType dtype;
  at::Device place;
  std::unique_ptr<CopyingCommunicator> tp;
  std::unique_ptr<Layer> layer;

  Batch batch(int microbatch) const {
    const auto ids = [&] {
      return at::randint(model.vocabulary, {microbatch, model.sequence},
                         at::TensorOptions(place).dtype(at::kLong));
    };
    return {ids(), ids()};
  }
  // What the previous layer would hand over; undefined for the first.
  at::Tensor input(int microbatch) const {
    if (kind == LayerKind::embedding) return {};
    return at::randn({microbatch, model.sequence, model.hidden}, at::TensorOptions(place).dtype(dtype))
        .set_requires_grad(true);
  }
  // What the next layer would send back; the head starts from its own loss.
  at::Tensor output_gradient(int microbatch) const {
    if (kind == LayerKind::head)
      return at::full({}, 1.0 / (microbatch * model.sequence),
                      at::TensorOptions(place).dtype(gradient_type(dtype)));
    return at::randn({microbatch, model.sequence, model.hidden}, at::TensorOptions(place).dtype(dtype));
  }
};

LayerBench::LayerBench(const JobSpec& job, LayerKind kind, int tp, Device& device)
    : state_(new State{.model = with_every_kind(job.model),
                       .kind = kind,
                       .dtype = scalar_type(job.training.precision),
                       .place = place_of(device),
                       .tp = nullptr,
                       .layer = nullptr}) {
  State& s = *state_;
  check_split(job.model, tp);
  if (tp > 1) s.tp = std::make_unique<CopyingCommunicator>(tp, !device.asynchronous());
  LayerContext context;
  context.model = s.model;
  context.padded_vocabulary = padded_vocabulary(job.model.vocabulary, {tp});
  context.dtype = s.dtype;
  context.device = s.place;
  context.seed = job.training.seed;
  context.tp = s.tp.get();
  s.layer = build_layer(context, layer_of_kind(s.model, kind));
}

LayerBench::~LayerBench() = default;

LayerSizes LayerBench::sizes(int microbatch) {
  State& s = *state_;
  LayerSizes sizes;
  for (const Parameter& parameter : s.layer->parameters()) sizes.parameters += parameter.value.numel();
  // A head only outputs its loss.
  sizes.output_elements = s.kind == LayerKind::head ? 1 : int64_t{s.model.sequence} * s.model.hidden;

  const Batch batch = s.batch(microbatch);
  const at::Tensor x = s.input(microbatch);
  const at::Tensor gradient = s.output_gradient(microbatch);
  s.layer->forward(x, batch).backward(gradient);  // gradients of the parameters exist from here on
  MemoryMeter meter(s.place.type());
  at::Tensor y = s.layer->forward(x, batch);
  const int64_t kept = meter.live_bytes();
  const int64_t forward_peak = meter.peak_bytes();
  meter.reset_peak();
  y.backward(gradient);
  const int64_t extra = std::max(forward_peak, meter.peak_bytes()) - kept;
  sizes.activation_bytes = kept / microbatch;
  sizes.workspace_bytes = std::max<int64_t>(0, extra) / microbatch;
  if (s.kind == LayerKind::embedding || s.kind == LayerKind::head) return sizes;
  y.reset();
  for (const auto& [level, bytes] : {std::pair(Recompute::light, &LayerSizes::light_bytes),
                                     std::pair(Recompute::mlp, &LayerSizes::mlp_bytes)}) {
    s.layer->recompute(level);
    MemoryMeter less(s.place.type());
    y = s.layer->forward(x, batch);
    sizes.*bytes = less.live_bytes() / microbatch;
    y.reset();
  }
  s.layer->recompute(Recompute::none);

  Batch split = batch;
  split.later = c10::make_intrusive<LaterGradients>();
  MemoryMeter pending(s.place.type());
  s.layer->forward(x, split).backward(s.output_gradient(microbatch));
  sizes.pending_bytes = pending.live_bytes() / microbatch;
  split.later->compute();
  return sizes;
}

}  // namespace sailor
