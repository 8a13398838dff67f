#include "planner/report/profile_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace sailor {
namespace {

constexpr double kMiB = 1 << 20;

std::string counted(int samples) {
  return samples == 0 ? "" : fmt::format(" ({} sample{})", samples, samples == 1 ? "" : "s");
}

std::string head(const ProfileFile& profile) {
  const ModelSpec& m = profile.model;
  const PlatformOverheads& o = profile.overheads;
  std::string text = fmt::format(
      "model      {}, hidden {}, heads {}{}, feed-forward {}, sequence {}, vocabulary {}{}{}, {}\n", m.family,
      m.hidden, m.heads,
      m.key_value_heads() == m.heads ? "" : fmt::format(" ({} for keys and values)", m.key_value_heads()),
      m.feed_forward, m.sequence, m.vocabulary, m.tied_embeddings ? " (tied)" : "",
      m.attention_window > 0 ? fmt::format(", window {}", m.attention_window) : "",
      to_string(profile.precision));
  text += fmt::format("GPU type   {}\n", profile.gpu_type);
  if (const std::string measured = profile.measured.text(); !measured.empty())
    text += fmt::format("measured   {}\n", measured);
  text += fmt::format("rank       {:.1f} MiB before any tensor{}\n",
                      static_cast<double>(o.base_memory_bytes) / kMiB,
                      counted(profile.overhead_samples.base_memory));
  text += fmt::format("iteration  {:.4f} ms outside layers and links{}\n", 1e3 * o.iteration_overhead_s,
                      counted(profile.overhead_samples.iteration));
  text += fmt::format("sums       {:.4f} ms per MB of gradients, without the messages{}\n",
                      1e9 * o.sync_s_per_byte, counted(profile.overhead_samples.sync));
  return text;
}

}  // namespace

std::string profile_table(const ProfileFile& profile) {
  std::string text = head(profile);
  text += fmt::format("\n{:>3} {:>4} {:<11} {:>13} {:>13} {:>13} {:>8} {:>8} {:>8}\n", "TP", "MB", "LAYER",
                      "FORWARD ms", "BACKWARD ms", "UPDATE ms", "SAMPLES", "OUTLIERS", "+- %");
  for (const ProfileFile::TimeCell& cell : profile.times) {
    text += fmt::format("{:>3} {:>4} {:<11} {:>13.4f} {:>13.4f} {:>13.4f} {:>8} {:>8} {:>8}\n", cell.shape.tp,
                        cell.microbatch, to_string(cell.kind), 1e3 * cell.times.forward_s,
                        1e3 * cell.times.backward_s, 1e3 * cell.times.update_s, cell.samples, cell.outliers,
                        cell.relative_error > 0 ? fmt::format("{:.1f}", 100 * cell.relative_error) : "-");
  }
  text += fmt::format("\n{:>3} {:<11} {:>14} {:>16} {:>16} {:>15} {:>8}\n", "TP", "LAYER", "PARAMETERS",
                      "OUTPUT elements", "ACTIVATIONS MiB", "WORKSPACE MiB", "SAMPLES");
  for (const ProfileFile::SizeCell& cell : profile.sizes) {
    text += fmt::format("{:>3} {:<11} {:>14} {:>16} {:>16.4f} {:>15.4f} {:>8}\n", cell.shape.tp,
                        to_string(cell.kind), cell.sizes.parameters, cell.sizes.output_elements,
                        static_cast<double>(cell.sizes.activation_bytes) / kMiB,
                        static_cast<double>(cell.sizes.workspace_bytes) / kMiB, cell.samples);
  }
  text +=
      "times: one microbatch of MB sequences through one layer; sizes: one GPU of the TP group, one "
      "sequence; "
      "+-: half of\nthe 95 % interval of forward + backward; outliers: samples above twice the median, "
      "excluded\n";
  return text;
}

}  // namespace sailor
