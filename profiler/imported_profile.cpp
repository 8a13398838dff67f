#include "profiler/imported_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "planner/profile/analytic_profile.h"
#include "planner/spec/error.h"
#include "profiler/samples.h"
#include "profiler/traces/kineto_trace.h"
#include "profiler/traces/nsys_trace.h"
#include "profiler/traces/traced_layers.h"

namespace sailor {
namespace {

Samples samples_of(const std::vector<double>& values) {
  Samples samples;
  for (const double value : values) samples.add(value);
  return samples;
}

ProfileFile::TimeCell time_cell(const TracedLayers& layers, LayerKind kind, double update_s,
                                const TraceImport& import) {
  const Samples forward = samples_of(layers.forward_s.at(kind)),
                backward = samples_of(layers.backward_s.at(kind));
  ProfileFile::TimeCell cell{
      .microbatch = import.microbatch, .shape = {.tp = import.tp}, .kind = kind, .times = {}};
  cell.times.forward_s = forward.median();
  cell.times.backward_s = backward.median();
  cell.times.update_s = update_s;
  cell.samples = std::min(forward.size(), backward.size());
  cell.outliers = std::max(forward.outliers(), backward.outliers());
  const double sum_s = cell.times.forward_s + cell.times.backward_s;
  const double error =
      (forward.relative_error() * cell.times.forward_s + backward.relative_error() * cell.times.backward_s) /
      sum_s;
  if (std::isfinite(error)) cell.relative_error = error;
  return cell;
}

// What applies to the whole file: that of `earlier`, if it is of the same thing.
ProfileFile base_of(const JobSpec& job, const TraceImport& import, const MeasuredWith& measured,
                    const ProfileFile& earlier) {
  ProfileFile profile = earlier;
  if (!earlier.times.empty() &&
      (!matches(earlier, job.model, job.training.precision) || earlier.gpu_type != import.gpu_type ||
       !same_equipment(earlier.measured, measured)))
    throw InputError({earlier.file, 0},
                     fmt::format("was measured with something else than the trace ({}): name another "
                                 "directory with --out, or remove it",
                                 earlier.measured.text()));
  profile.gpu_type = import.gpu_type;
  profile.model = job.model;
  profile.precision = job.training.precision;
  profile.measured = measured;
  return profile;
}

}  // namespace

ImportedProfile import_trace(const JobSpec& job, const TraceImport& import, const FrameworkStyle& framework,
                             const ProfileFile& earlier) {
  if (job.training.lora)
    throw InputError({job.file, 0},
                     "training.lora: layers are profiled without adapters, which the planner adds");
  if (!job.model.splits_over({import.tp}))
    throw InputError(fmt::format("--tp: the model does not divide by {}", import.tp));
  const ProgramTrace trace =
      is_nsys_report(import.trace) ? read_nsys_trace(import.trace) : read_kineto_trace(import.trace);
  if (trace.kernels.empty() != import.on_processors)
    throw InputError(
        {import.trace, 0},
        import.on_processors
            ? fmt::format("the trace is of a GPU, and {} computes on processors", import.gpu_type)
            : "the trace has no kernels of a GPU: profile with ProfilerActivity.CUDA, too");
  const TracedLayers layers = traced_layers(trace, job.model, import.tp, import.block_class);

  MeasuredWith measured;
  measured.at = utc_time(std::time(nullptr));
  measured.device = trace.kernels.empty() ? std::string() : trace.device;
  measured.libraries = job.trainer.own() ? "a trainer of its own" : job.trainer.kind;
  measured.remark = fmt::format("a trace of {}; sizes are estimates", trace.recorded_by);
  ImportedProfile imported{base_of(job, import, measured, earlier), layers.block_class,
                           !trace.kernels.empty()};
  ProfileFile& profile = imported.profile;
  profile.overheads = overheads_of(framework, {.base_memory_bytes = import.base_memory_bytes});

  const ReplicaShape shape{.tp = import.tp};
  const ModelSpec model = with_every_kind(job.model);
  const std::vector<LayerSizes> sizes = analytic_sizes(shape_of(model), framework, profile.precision, shape);
  double parameters = 0;
  for (const LayerSizes& layer : sizes) parameters += static_cast<double>(layer.parameters);
  const double update_s = layers.update_s.empty() ? 0 : samples_of(layers.update_s).median();
  if (!(update_s > 0))
    throw InputError({import.trace, 0},
                     "the trace has no step of a torch.optim.Optimizer: profile whole steps of training");
  std::erase_if(profile.times, [&](const ProfileFile::TimeCell& cell) {
    return cell.microbatch == import.microbatch && cell.shape == shape;
  });
  std::erase_if(profile.sizes, [&](const ProfileFile::SizeCell& cell) { return cell.shape == shape; });
  for (const LayerKind kind : layer_kinds(model)) {
    const LayerSizes& of_kind = sizes[static_cast<size_t>(layer_of_kind(model, kind))];
    const double share = static_cast<double>(of_kind.parameters) / parameters;
    profile.times.push_back(time_cell(layers, kind, update_s * share, import));
    profile.sizes.push_back({shape, kind, of_kind});
  }
  return imported;
}

}  // namespace sailor
