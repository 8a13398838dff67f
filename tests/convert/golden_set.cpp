// Megatron-LM's functional tests: peak bytes of the allocator on the last stage, where the loss is logged.
// Most properties are in the columns; the rest is in the tests' names and common to their families.
#include <algorithm>

#include "tests/convert/convert.h"
#include "tests/convert/csv.h"
#include "tests/convert/shape.h"
#include "tests/convert/uniform_plan.h"

namespace sailor::convert {
namespace {

bool has(const CsvRow& row, const std::string& part) {
  return row.text("test").find(part) != std::string::npos;
}

// The three families of models that the tests train, by their width.
bool is_large(const CsvRow& row) {
  return row.integer("hidden") >= 4096;
}

TransformerShape shape_of(const CsvRow& row) {
  const int vocabulary = has(row, "7b_tp") ? 131073 : has(row, "15b") ? 256000 : 50257;
  TransformerShape shape = gpt_shape(row.integer("layers"), row.integer("hidden"), row.integer("heads"),
                                     row.integer_or("seq", 1024), vocabulary);
  if (is_large(row)) shape.kv_heads = 8;
  shape.feed_forward = row.integer_or("ffn", shape.feed_forward);
  shape.gated_mlp = has(row, "swiglu") && !row.empty("ffn");
  shape.tied_embeddings = !has(row, "untie") && !has(row, "uneven") && !has(row, "account") && !is_large(row);
  shape.learned_positions = !has(row, "rope") && !is_large(row);
  shape.biases = !has(row, "disable_bias") && !has(row, "15b");
  return shape;
}

// Which attention ran where the row does not say: fused kernels came with the newer containers.
bool is_unfused(const CsvRow& row, bool fused_library) {
  if (row.text("attn").rfind("unfused", 0) == 0) return true;
  if (!row.empty("attn")) return false;
  const std::string& platform = row.text("platform");
  const bool old_container =
      (platform.find("dracooci") != std::string::npos && !row.empty("deterministic")) ||
      (platform.find("lts") != std::string::npos && row.integer("n") <= 21);
  return !fused_library || old_container;
}

// Chunks of the model on a rank: the column `vp` is layers per chunk, or, where embedding and loss count as
// layers, the number of chunks.
void cut(const CsvRow& row, const TransformerShape& shape, UniformPlan& plan) {
  plan.cuts = even_cuts(shape.layers, plan.pp);
  // The tests of uneven stages leave two blocks to the last one.
  if (has(row, "uneven_pipeline")) plan.cuts[plan.cuts.size() - 2] = shape.layers - 1;
  if (row.empty("vp")) return;
  const int vp = row.integer("vp");
  if (shape.layers % (plan.pp * vp) == 0) {
    plan.interleave = shape.layers / (plan.pp * vp);
    plan.cuts = even_cuts(shape.layers, plan.pp * plan.interleave);
  } else {
    plan.interleave = vp;
    const int each = (shape.layers + 2) / (plan.pp * vp);
    plan.cuts = {0};
    for (int chunk = 1; chunk <= plan.pp * vp; ++chunk) plan.cuts.push_back(chunk * each);
    plan.cuts.back() = shape.layers + 2;
  }
}

}  // namespace

std::vector<MeasuredRun> convert_golden(const std::string& path) {
  Csv csv;
  load_csv(path, csv);
  std::vector<MeasuredRun> records;
  for (const CsvRow& row : csv.rows) {
    if (row.text("family") != "gpt" || row.flag("fsdp")) continue;
    MeasuredRun record;
    record.name = std::to_string(row.where().line);
    record.where = row.where();
    record.shape = shape_of(row);
    record.model = row.text("test");
    const bool fused_library = (has(row, "_te_") && !has(row, "uninstall_te")) || is_large(row) ||
                               has(row, "grpo") || has(row, "weekly");
    record.framework = fused_library ? "megatron-core" : "megatron-local";
    record.platform = row.text("platform").find("a100") != std::string::npos ? "dgx-a100" : "dgx-h100";
    record.precision = Precision::bf16;
    auto& options = record.options;
    options["attention"] = is_unfused(row, fused_library) ? "unfused" : "fused";
    // Rows without bf16 train in fp16, whose main gradients are 16 bit.
    if (!row.flag("bf16") && !has(row, "15b")) options["gradient_bytes"] = "2";
    if (row.flag("sp") && row.integer("tp") > 1) options["sequence_parallel"] = "true";
    // The fused loss, and a head whose weight gradient is put off, keep more of the logits.
    if (has(row, "cross_entropy_loss_fusion") || has(row, "defer_embedding")) options["logit_bytes"] = "10";
    if (has(row, "15b")) options["dropout_bytes"] = "0";
    UniformPlan uniform;
    uniform.model = record.model;
    uniform.pp = row.integer("pp");
    uniform.tp = row.integer("tp");
    uniform.cp = row.integer("cp");
    // Tests run on one node; those without a global batch on 32.
    const bool release = row.empty("gbs");
    const int gpus = release && !has(row, "grpo") ? 256 : 8;
    uniform.dp = std::max(1, gpus / (uniform.tp * uniform.cp * uniform.pp));
    uniform.microbatch = row.integer("mbs");
    uniform.global_batch =
        std::max<int64_t>(row.integer_or("gbs", 1152), int64_t{uniform.dp} * uniform.microbatch);
    uniform.gpu_type = record.platform == "dgx-a100" ? "A100-80" : "H100-80";
    if (row.text("platform").find("gb200") != std::string::npos) uniform.gpu_type = "GB200-186";
    uniform.recompute = row.text("recompute") == "full" ? Recompute::full : Recompute::none;
    uniform.zero = row.flag("dist_opt") ? Zero::optimizer : Zero::none;
    cut(row, record.shape, uniform);
    // Interleaving needs microbatches in whole groups.
    if (uniform.interleave > 1) {
      const int64_t group = int64_t{uniform.dp} * uniform.microbatch * uniform.pp;
      uniform.global_batch = (uniform.global_batch + group - 1) / group * group;
    }
    record.plan = uniform.plan();
    record.memory_stage = -1;
    if (row.optional_number("mem_max_alloc_bytes")) {
      record.peak_memory_bytes.push_back(row.number("mem_max_alloc_bytes"));
      records.push_back(std::move(record));
    }
  }
  return records;
}

}  // namespace sailor::convert
